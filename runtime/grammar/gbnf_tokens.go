package grammar

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// token reads <text> or <[id]>. If not is set, it returns the expression for any other token.
func (p *gbnf) token(not bool) (automaton.Expr, error) {
	end := strings.IndexByte(p.text[p.at:], '>')
	if end < 0 {
		return nil, p.fail("a token is not closed")
	}
	name := p.text[p.at : p.at+end+1]
	if p.vocab == nil {
		return nil, p.fail("%s is a token, but the grammar is compiled without a vocabulary", automaton.Clip(name))
	}
	var id int32
	if number, ok := strings.CutPrefix(name, "<["); ok {
		n, err := strconv.ParseInt(strings.TrimSuffix(number, "]>"), 10, 32)
		if err != nil || n < 0 || int(n) >= p.vocab.size || !strings.HasSuffix(number, "]>") {
			return nil, p.fail("%s is not a token; use <[n]> with n from 0 to %d", automaton.Clip(name), p.vocab.size-1)
		}
		id = int32(n)
	} else if id, ok = p.vocab.find(name); !ok {
		return nil, p.fail("%s is not a single token of the vocabulary", automaton.Clip(name))
	}
	text := string(p.vocab.text[id])
	switch {
	case p.vocab.Ends(id):
		return nil, p.fail("%s ends the answer; end the grammar instead", automaton.Clip(name))
	case text == "" || len(text) > maxTokenBytes:
		return nil, p.fail("%s is a token that an answer cannot contain", automaton.Clip(name))
	}
	p.at += end + 1
	switch {
	case !not:
		return automaton.Literal(text), nil
	case text[0] == ControlMark[0]:
		return automaton.Choice{automaton.AnyRune, p.otherControls(text)}, nil
	}
	return p.otherText(text)
}

// otherControls returns the control tokens of the vocabulary except one.
func (p *gbnf) otherControls(but string) automaton.Expr {
	var out automaton.Words
	for _, id := range p.vocab.marked() {
		if t := string(p.vocab.text[id]); t != but {
			out = append(out, t)
		}
	}
	return out
}

// otherText returns any number of tokens that do not spell a text. Tokens are compared by their
// text, so other tokens must not spell it either.
func (p *gbnf) otherText(text string) (automaton.Expr, error) {
	if p.at < len(p.text) {
		switch p.text[p.at] {
		case '*':
			p.at++
			return Without(text)(p.Builder)
		case '+':
			p.at++
			return automaton.Call{Rule: without(p.Builder, []string{text}, 1)}, nil
		}
	}
	return nil, p.fail("! before a token of ordinary text needs * or + after the token")
}

// find returns the token with a text, or the control token with this spelling.
func (v *Vocab) find(text string) (int32, bool) {
	for _, t := range []string{text, ControlMark + text} {
		i, ok := slices.BinarySearchFunc(v.all, t, func(id int32, t string) int {
			return bytes.Compare(v.text[id], []byte(t))
		})
		if ok {
			return v.all[i], true
		}
	}
	for _, id := range v.ends { // these are not in v.all
		if string(v.text[id]) == text || string(v.text[id]) == ControlMark+text {
			return id, true
		}
	}
	return 0, false
}

// marked returns the control tokens. Their texts sort after all others.
func (v *Vocab) marked() []int32 {
	from, _ := slices.BinarySearchFunc(v.all, ControlMark+"\x00", func(id int32, mark string) int {
		return bytes.Compare(v.text[id], []byte(mark))
	})
	return v.all[from:]
}
