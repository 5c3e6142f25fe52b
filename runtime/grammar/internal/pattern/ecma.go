package pattern

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// ecma translates an ECMA-262 expression to RE2's syntax. Counted repetitions become named groups,
// since RE2 counts to 1,000 at most, and syntax with a different meaning is written out.
type ecma struct {
	text string
	at   int
	out  []byte
	// If wide is set, syntax on which engines differ matches what any engine matches; otherwise it
	// matches only what all engines match.
	wide   bool
	groups []group  // open groups
	last   int      // start in out of the operand of a quantifier; -1 for none
	counts [][2]int // by number in the name of a group: minimum and maximum repetitions; maximum -1 for no limit
	// looks are the distinct look-arounds; asks maps the number in the name of a group to its
	// look-around.
	looks []look
	asks  []int
	known map[string]int
}

// group is an open group: its start in out, its kind, and the value of wide outside it.
type group struct {
	begin       int
	looks       bool
	behind, not bool
	wide        bool
}

const (
	// White space of RE2 and of ECMA-262, in the syntax of a class.
	narrowSpace = `\t\n\f\r `
	wideSpace   = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	// The complements of these.
	narrowOther = `\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}` +
		`\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	wideOther = `\x{0}-\x{8}\x{b}\x{e}-\x{1f}!-\x{10ffff}`
	// lineBreaks are the characters that a dot does not match.
	lineBreaks = `\n\r\x{2028}\x{2029}`
	countName  = "n"
	lookName   = "l"
	// maxSpelled is the largest length in bytes of the translated expression.
	maxSpelled = 4 << 20
)

// parseECMA parses an expression. Each look-around is replaced by an empty group numbered from 1
// and returned separately. Back references, which RE2 does not support either, are errors.
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
		if len(e.out) > maxSpelled {
			return fmt.Errorf("its character classes need more than %d MiB when written out", maxSpelled>>20)
		}
	}
	return nil
}

// counted replaces the groups of counted repetitions by repetitions, and separates look-arounds.
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

// check returns an error for syntax that is not supported inside look-behind.
func (l *look) check(all []look) error {
	var bad func(re *syntax.Regexp) bool
	bad = func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpEndText || re.Op == syntax.OpEndLine ||
			re.Op == syntax.OpCapture && re.Cap > 0 && !all[re.Cap-1].behind || slices.ContainsFunc(re.Sub, bad)
	}
	if l.behind && bad(l.re) {
		return fmt.Errorf("look-ahead and the end of the text are not supported inside look-behind")
	}
	return nil
}

// looked ends a look-around, whose text starts at g.begin.
func (e *ecma) looked(g group) error {
	body := string(e.out[g.begin:])
	body = body[strings.IndexByte(body, '>')+1:]
	key := fmt.Sprint(g.behind, g.not, body)
	k, met := e.known[key]
	if !met {
		if k = len(e.looks); k >= maxLooks {
			return fmt.Errorf("it has more than %d look-arounds", maxLooks)
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

// word writes a word boundary, or with not its negation.
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

// next reads one part of the expression.
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
			return fmt.Errorf("unmatched )")
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
		if lo, hi, size, ok := quantifier(e.text[e.at:]); ok {
			return e.count(lo, hi, size)
		}
		e.out = append(e.out, '\\')
	case ']', '}':
		e.out = append(e.out, '\\')
	case '|':
		begin = -1
	case '*', '+', '?':
		begin = -1
		if strings.HasPrefix(e.text[e.at+1:], "?") { // laziness does not change the set of matching texts
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

// group reads the start of a group. It drops names.
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
		e.out = append(e.out, "(?P<>"...) // the name is written at the end of the group
		e.at += size
		return nil
	case strings.HasPrefix(rest, "?<") || strings.HasPrefix(rest, "?P<"):
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return fmt.Errorf("the name of a group is not closed")
		}
		e.out = append(e.out, "(?:"...)
		e.at += end + 1
		return nil
	}
	e.out = append(e.out, "("...)
	return nil
}

// quantifier reads {n}, {n,} or {n,m}.
func quantifier(text string) (lo, hi, size int, ok bool) {
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
			n = automaton.MaxCount + 1
		}
		return n, s != ""
	}
	lo, ok = number(low)
	if !closed || !ok {
		return 0, 0, 0, false
	}
	hi = lo
	if two {
		if hi, ok = number(high); high == "" {
			hi, ok = -1, true
		}
	}
	return lo, hi, len(inside) + 2, ok
}

// count writes a counted repetition as a named group.
func (e *ecma) count(lo, hi, size int) error {
	switch {
	case e.last < 0:
		return fmt.Errorf("%s has no operand", e.text[e.at:e.at+size])
	case hi >= 0 && lo > hi, lo > automaton.MaxCount, hi > automaton.MaxCount:
		return fmt.Errorf("%s is not a valid range of counts up to %d", e.text[e.at:e.at+size], automaton.MaxCount)
	}
	body := string(e.out[e.last:])
	e.out = fmt.Appendf(e.out[:e.last], "(?P<%s%d>%s)", countName, len(e.counts), body)
	e.counts = append(e.counts, [2]int{lo, hi})
	if e.at += size; strings.HasPrefix(e.text[e.at:], "?") {
		e.at++
	}
	e.last = -1
	return nil
}

// class reads a character class. A bracket inside it is a character; [] matches no character and
// [^] any.
func (e *ecma) class() error {
	begin := len(e.out)
	e.at++
	not := strings.HasPrefix(e.text[e.at:], "^")
	open, empty := "[", `[^\x{0}-\x{10ffff}]`
	if not {
		e.at++
		open, empty = "[^", `[\x{0}-\x{10ffff}]`
	}
	if strings.HasPrefix(e.text[e.at:], "]") {
		e.at++
		e.out = append(e.out, empty...)
		e.last = begin
		return nil
	}
	e.out = append(e.out, open...)
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
		return fmt.Errorf("a character class is not closed")
	}
	e.at++
	e.out = append(e.out, ']')
	e.last = begin
	return nil
}
