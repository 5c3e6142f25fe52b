package grammar

import (
	"fmt"
	"regexp/syntax"
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
	groups []int    // where open groups begin in out
	last   int      // where what a quantifier repeats begins in out; -1: nothing is there
	counts [][2]int // of groups by their names; the second is -1 where there is no end
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
)

// parseECMA reads an expression. What RE2 lacks (look-around, references) and boundaries of words
// are errors.
func parseECMA(text string, wide bool) (*syntax.Regexp, error) {
	e := ecma{text: text, wide: wide, last: -1}
	for e.at < len(e.text) {
		if err := e.next(); err != nil {
			return nil, err
		}
	}
	re, err := syntax.Parse(string(e.out), syntax.Perl)
	if err != nil {
		return nil, err
	}
	return e.counted(re), nil
}

// counted puts the counts in the place of their groups.
func (e *ecma) counted(re *syntax.Regexp) *syntax.Regexp {
	for i, s := range re.Sub {
		re.Sub[i] = e.counted(s)
	}
	if re.Op == syntax.OpCapture {
		n, err := strconv.Atoi(strings.TrimPrefix(re.Name, countName))
		if err != nil {
			return re
		}
		c := e.counts[n]
		return &syntax.Regexp{Op: syntax.OpRepeat, Sub: re.Sub, Min: c[0], Max: c[1]}
	}
	return re
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
		e.groups = append(e.groups, begin)
		e.last = -1
		return e.group()
	case ')':
		if len(e.groups) == 0 {
			return fmt.Errorf("a ) closes no group")
		}
		begin = e.groups[len(e.groups)-1]
		e.groups = e.groups[:len(e.groups)-1]
	case '.':
		e.out = append(e.out, "[^"+lineBreaks+"]"...)
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
		return fmt.Errorf("look-around is read at the front, behind ^, and nowhere else")
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
