package grammar

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ecma writes an expression of ECMA-262 as RE2 reads it. Counts become groups with names, since RE2
// counts to 1,000 at most, and what both spell alike and mean differently is spelled out.
type ecma struct {
	text string
	at   int
	out  []byte
	// wide: what engines see differently is matched where one of them matches it; else where all
	// do.
	wide   bool
	groups []group  // that are open
	last   int      // where what a quantifier repeats begins in out; -1: nothing is there
	counts [][2]int // of groups by their names; the second is -1 where there is no end
	// looks are look-around, asks the number of it by the names of groups: what is equal is one.
	looks []look
	asks  []int
	known map[string]int
}

// group is one that is open: where it begins in out, what it is, and what wide was outside of it.
type group struct {
	begin       int
	looks       bool
	behind, not bool
	wide        bool
}

const (
	// RE2's white space and ECMA's, as they stand in a class.
	narrowSpace = `\t\n\f\r `
	wideSpace   = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	// What is neither.
	narrowOther = `\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}` +
		`\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	wideOther = `\x{0}-\x{8}\x{b}\x{e}-\x{1f}!-\x{10ffff}`
	// lineBreaks are what a dot leaves out.
	lineBreaks = `\n\r\x{2028}\x{2029}`
	countName  = "n"
	lookName   = "l"
	// mostSpelled is how long an expression may be as RE2 reads it.
	mostSpelled = 4 << 20
)

// parseECMA reads an expression and its look-around, for each of which a group of nothing stands in
// the expression, numbered from 1 on. References to groups, which RE2 lacks, too, are errors.
func parseECMA(text string, wide bool) (*syntax.Regexp, []look, error) {
	e := ecma{text: text, wide: wide, last: -1, known: map[string]int{}}
	if err := e.all(); err != nil {
		return nil, nil, err
	}
	re, err := syntax.Parse(string(e.out), syntax.Perl)
	if err != nil {
		return nil, nil, err
	}
	re = e.counted(re)
	for i := range e.looks {
		if err := e.looks[i].check(e.looks); err != nil {
			return nil, nil, err
		}
	}
	return re, e.looks, nil
}

func (e *ecma) all() error {
	for e.at < len(e.text) {
		if err := e.next(); err != nil {
			return err
		}
		if len(e.out) > mostSpelled {
			return fmt.Errorf("its classes of characters take more than %d MiB, written out", mostSpelled>>20)
		}
	}
	return nil
}

// counted puts the counts in the place of their groups, and look-around apart.
func (e *ecma) counted(re *syntax.Regexp) *syntax.Regexp {
	for i, s := range re.Sub {
		re.Sub[i] = e.counted(s)
	}
	if re.Op != syntax.OpCapture {
		return re
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(re.Name, countName)); err == nil {
		c := e.counts[n]
		return &syntax.Regexp{Op: syntax.OpRepeat, Sub: re.Sub, Min: c[0], Max: c[1]}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(re.Name, lookName)); err == nil {
		k := e.asks[n]
		if e.looks[k].re == nil {
			e.looks[k].re = re.Sub[0]
		}
		return &syntax.Regexp{Op: syntax.OpCapture, Cap: k + 1, Sub: []*syntax.Regexp{{Op: syntax.OpEmptyMatch}}}
	}
	return re
}

// check refuses what look-behind is not followed through.
func (l *look) check(all []look) error {
	var bad func(re *syntax.Regexp) bool
	bad = func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpEndText || re.Op == syntax.OpEndLine ||
			re.Op == syntax.OpCapture && re.Cap > 0 && !all[re.Cap-1].behind || slices.ContainsFunc(re.Sub, bad)
	}
	if l.behind && bad(l.re) {
		return fmt.Errorf("neither look-ahead nor the end of the text is supported inside of look-behind")
	}
	return nil
}

// looked ends look-around, whose text stands behind begin.
func (e *ecma) looked(g group) error {
	body := string(e.out[g.begin:])
	body = body[strings.IndexByte(body, '>')+1:]
	key := fmt.Sprint(g.behind, g.not, body)
	k, met := e.known[key]
	if !met {
		if k = len(e.looks); k >= mostLooks {
			return fmt.Errorf("it looks around more than %d times", mostLooks)
		}
		e.looks = append(e.looks, look{behind: g.behind, not: g.not})
		e.known[key] = k
	}
	e.asks = append(e.asks, k)
	e.out = fmt.Appendf(e.out[:g.begin], "(?P<%s%d>", lookName, len(e.asks)-1)
	if !met {
		e.out = append(e.out, body...)
	}
	return nil
}

// word is a boundary of words, or no such: what stands on one side alone, or on both or none.
func (e *ecma) word(not bool) error {
	text, at := e.text, e.at
	e.text, e.at = `(?:(?<=\w)(?!\w)|(?<!\w)(?=\w))`, 0
	if not {
		e.text = `(?:(?<=\w)(?=\w)|(?<!\w)(?!\w))`
	}
	err := e.all()
	e.text, e.at = text, at+2
	return err
}

// next reads one part.
func (e *ecma) next() error {
	c := e.text[e.at]
	begin := len(e.out)
	switch c {
	case '\\':
		return e.escape(false, e.wide, begin)
	case '[':
		return e.class()
	case '(':
		e.groups = append(e.groups, group{begin: begin, wide: e.wide})
		e.last = -1
		return e.group()
	case ')':
		if len(e.groups) == 0 {
			return fmt.Errorf("a ) closes no group")
		}
		g := e.groups[len(e.groups)-1]
		begin, e.wide = g.begin, g.wide
		e.groups = e.groups[:len(e.groups)-1]
		if g.looks {
			if err := e.looked(g); err != nil {
				return err
			}
		}
	case '.':
		if e.wide {
			e.out = append(e.out, `[^\n]`...)
		} else {
			e.out = append(e.out, "[^"+lineBreaks+"]"...)
		}
		e.at++
		e.last = begin
		return nil
	case '{':
		if least, most, size, ok := quantifier(e.text[e.at:]); ok {
			return e.count(least, most, size)
		}
		e.out = append(e.out, '\\')
	case ']', '}':
		e.out = append(e.out, '\\')
	case '|':
		begin = -1
	case '*', '+', '?':
		begin = -1
		if strings.HasPrefix(e.text[e.at+1:], "?") { // which match is taken first changes no text
			e.out = append(e.out, c)
			e.at += 2
			e.last = -1
			return nil
		}
	}
	_, size := utf8.DecodeRuneInString(e.text[e.at:])
	e.out = append(e.out, e.text[e.at:e.at+size]...)
	e.at += size
	e.last = begin
	return nil
}

// group reads what a group begins with. Names are left out.
func (e *ecma) group() error {
	e.at++
	rest := e.text[e.at:]
	switch {
	case !strings.HasPrefix(rest, "?"):
		e.out = append(e.out, "(?:"...)
		return nil
	case strings.HasPrefix(rest, "?=") || strings.HasPrefix(rest, "?!") || strings.HasPrefix(rest, "?<=") ||
		strings.HasPrefix(rest, "?<!"):
		g := &e.groups[len(e.groups)-1]
		g.looks, g.behind = true, rest[1] == '<'
		size := 2
		if g.behind {
			size = 3
		}
		if g.not = rest[size-1] == '!'; g.not {
			e.wide = !e.wide
		}
		e.out = append(e.out, "(?P<>"...) // its name is known at its end
		e.at += size
		return nil
	case strings.HasPrefix(rest, "?<") || strings.HasPrefix(rest, "?P<"):
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return fmt.Errorf("the name of a group has no end")
		}
		e.out = append(e.out, "(?:"...)
		e.at += end + 1
		return nil
	}
	e.out = append(e.out, "("...)
	return nil
}

// quantifier reads {n}, {n,} and {n,m}.
func quantifier(text string) (least, most, size int, ok bool) {
	inside, _, closed := strings.Cut(text[1:], "}")
	low, high, two := strings.Cut(inside, ",")
	number := func(s string) (int, bool) {
		for i := range len(s) {
			if s[i] < '0' || s[i] > '9' {
				return 0, false
			}
		}
		n, err := strconv.Atoi(s)
		if err != nil && s != "" {
			n = maxCount + 1
		}
		return n, s != ""
	}
	least, ok = number(low)
	if !closed || !ok {
		return 0, 0, 0, false
	}
	most = least
	if two {
		if most, ok = number(high); high == "" {
			most, ok = -1, true
		}
	}
	return least, most, len(inside) + 2, ok
}

// count makes a group of what is repeated.
func (e *ecma) count(least, most, size int) error {
	switch {
	case e.last < 0:
		return fmt.Errorf("%s repeats nothing", e.text[e.at:e.at+size])
	case most >= 0 && least > most, least > maxCount, most > maxCount:
		return fmt.Errorf("%s is not from a number to one as large, %d at most", e.text[e.at:e.at+size], maxCount)
	}
	body := string(e.out[e.last:])
	e.out = fmt.Appendf(e.out[:e.last], "(?P<%s%d>%s)", countName, len(e.counts), body)
	e.counts = append(e.counts, [2]int{least, most})
	if e.at += size; strings.HasPrefix(e.text[e.at:], "?") {
		e.at++
	}
	e.last = -1
	return nil
}

// class reads a class of characters. A bracket inside of it is one, and [] and [^] are no and any
// character.
func (e *ecma) class() error {
	begin := len(e.out)
	e.at++
	not := strings.HasPrefix(e.text[e.at:], "^")
	if not {
		e.at++
	}
	if strings.HasPrefix(e.text[e.at:], "]") {
		e.at++
		e.out = append(e.out, map[bool]string{true: `[\x{0}-\x{10ffff}]`, false: `[^\x{0}-\x{10ffff}]`}[not]...)
		e.last = begin
		return nil
	}
	e.out = append(e.out, map[bool]string{true: "[^", false: "["}[not]...)
	for e.at < len(e.text) && e.text[e.at] != ']' {
		switch c := e.text[e.at]; c {
		case '\\':
			if err := e.escape(true, e.wide != not, begin); err != nil {
				return err
			}
			continue
		case '[', '^':
			e.out = append(e.out, '\\')
		}
		_, size := utf8.DecodeRuneInString(e.text[e.at:])
		e.out = append(e.out, e.text[e.at:e.at+size]...)
		e.at += size
	}
	if e.at == len(e.text) {
		return fmt.Errorf("a class of characters has no end")
	}
	e.at++
	e.out = append(e.out, ']')
	e.last = begin
	return nil
}
