package grammar

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// token reads <text> or <[id]>, behind not where it stands for any other token.
func (p *gbnf) token(not bool) (expr, error) {
	end := strings.IndexByte(p.text[p.at:], '>')
	if end < 0 {
		return nil, p.fail("a token is not closed")
	}
	name := p.text[p.at : p.at+end+1]
	if p.vocab == nil {
		return nil, p.fail("%s is a token of a vocabulary, and there is none", clip(name))
	}
	var id int32
	if number, ok := strings.CutPrefix(name, "<["); ok {
		n, err := strconv.ParseInt(strings.TrimSuffix(number, "]>"), 10, 32)
		if err != nil || n < 0 || int(n) >= p.vocab.size || !strings.HasSuffix(number, "]>") {
			return nil, p.fail("%s is no token: give <[n]> with n from 0 to %d", clip(name), p.vocab.size-1)
		}
		id = int32(n)
	} else if id, ok = p.vocab.find(name); !ok {
		return nil, p.fail("%s is not one token of the vocabulary", clip(name))
	}
	text := string(p.vocab.text[id])
	switch {
	case p.vocab.Ends(id):
		return nil, p.fail("%s ends an answer, which a grammar says by ending", clip(name))
	case text == "" || len(text) > maxTokenBytes:
		return nil, p.fail("%s is a token that answers do not have", clip(name))
	}
	p.at += end + 1
	switch {
	case !not:
		return literal(text), nil
	case text[0] == ControlMark[0]:
		return choice{anyRune, p.otherControls(text)}, nil
	}
	return p.otherText(text)
}

// otherControls are the control tokens of the vocabulary but one.
func (p *gbnf) otherControls(but string) expr {
	var out words
	for _, id := range p.vocab.marked() {
		if t := string(p.vocab.text[id]); t != but {
			out = append(out, t)
		}
	}
	return out
}

// otherText is any number of tokens that are none of a text; here they are told by what they come
// to, so that no other tokens spell it.
func (p *gbnf) otherText(text string) (expr, error) {
	if p.at < len(p.text) {
		switch p.text[p.at] {
		case '*':
			p.at++
			return Without(text)(p.builder)
		case '+':
			p.at++
			return call{p.without([]string{text}, 1)}, nil
		}
	}
	return nil, p.fail("! before a token that is text needs * or + behind it")
}

// find is the token of a text, or the control token that is spelled so.
func (v *Vocab) find(text string) (int32, bool) {
	for _, t := range []string{text, ControlMark + text} {
		i, ok := slices.BinarySearchFunc(v.all, t, func(id int32, t string) int {
			return bytes.Compare(v.text[id], []byte(t))
		})
		if ok {
			return v.all[i], true
		}
	}
	for _, id := range v.ends { // these have no place among the others
		if string(v.text[id]) == text || string(v.text[id]) == ControlMark+text {
			return id, true
		}
	}
	return 0, false
}

// marked are the control tokens: their texts stand behind all others, and behind the mark alone.
func (v *Vocab) marked() []int32 {
	from, _ := slices.BinarySearchFunc(v.all, ControlMark+"\x00", func(id int32, mark string) int {
		return bytes.Compare(v.text[id], []byte(mark))
	})
	return v.all[from:]
}
