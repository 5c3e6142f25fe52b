package grammar

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
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

// escape reads what a backslash begins, inside a class or outside of it.
func (e *ecma) escape(inside, wide bool, begin int) error {
	if e.at+1 == len(e.text) {
		return fmt.Errorf("nothing follows its last backslash")
	}
	c := e.text[e.at+1]
	set := ""
	switch c {
	case 's':
		set = map[bool]string{true: wideSpace, false: narrowSpace}[wide]
	case 'S':
		set = map[bool]string{true: wideOther, false: narrowOther}[wide]
	case 'p', 'P':
		name, size := e.property()
		if set = propertySet(name); set == "" {
			e.out = append(e.out, `\`+string(c)+"{"+name+"}"...)
			e.at += size
			e.last = begin
			return nil
		}
		if c == 'P' {
			return fmt.Errorf(`\P{%s} is not supported`, clip(name))
		}
		e.at += size - 2
	case 'u':
		return e.number(begin)
	case 'c':
		if e.at+2 < len(e.text) {
			e.out = fmt.Appendf(e.out, `\x{%x}`, e.text[e.at+2]%32)
			e.at += 3
			e.last = begin
			return nil
		}
	case 'b', 'B':
		if !inside || c == 'B' {
			return fmt.Errorf(`\b and \B are not supported`)
		}
		set = `\x{8}`
	}
	size := 2
	switch {
	case set != "" && inside:
		e.out = append(e.out, set...)
		if rest := e.text[e.at+2:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			e.out = append(e.out, `\-`...) // no range begins with a set
			size++
		}
	case set != "":
		e.out = append(e.out, "["+set+"]"...)
	default:
		if size = plainEscape(e.text[e.at:]); size == 0 {
			return fmt.Errorf(`\%c is not supported`, c)
		}
		e.out = append(e.out, e.text[e.at:e.at+size]...)
	}
	e.at += size
	e.last = begin
	return nil
}

// plainEscape is the length of an escape that RE2 reads as ECMA does; 0 where it does not.
func plainEscape(text string) int {
	c := text[1]
	digits := func(set string, most int) (n int) {
		for n < most && 2+n < len(text) && strings.IndexByte(set, text[2+n]) >= 0 {
			n++
		}
		return n
	}
	switch {
	case c == 'x':
		if digits("0123456789abcdefABCDEF", 2) == 2 {
			return 4
		}
		return 0
	case c == '0':
		return 2 + digits("01234567", 2)
	case strings.IndexByte("dDwWnrtfvAz", c) >= 0:
		return 2
	case c >= utf8.RuneSelf || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return 0
	}
	return 2
}

// number reads \uXXXX, two of them that are one character, and \u{X}.
func (e *ecma) number(begin int) error {
	hex := func(at int) (rune, int) {
		if at+2 < len(e.text) && e.text[at+2] == '{' {
			if end := strings.IndexByte(e.text[at:], '}'); end > 3 {
				n, err := strconv.ParseUint(e.text[at+3:at+end], 16, 21)
				if err == nil && n <= unicode.MaxRune {
					return rune(n), end + 1
				}
			}
			return 0, 0
		}
		if at+6 > len(e.text) || e.text[at:at+2] != `\u` {
			return 0, 0
		}
		n, err := strconv.ParseUint(e.text[at+2:at+6], 16, 16)
		if err != nil {
			return 0, 0
		}
		return rune(n), 6
	}
	r, size := hex(e.at)
	if size == 0 {
		return fmt.Errorf(`\u wants four digits, or some in braces`)
	}
	if low, more := hex(e.at + size); more == 6 && size == 6 && utf16.DecodeRune(r, low) != unicode.ReplacementChar {
		r, size = utf16.DecodeRune(r, low), 12
	}
	e.out = fmt.Appendf(e.out, `\x{%x}`, r)
	e.at += size
	e.last = begin
	return nil
}

// property reads the name of a property of characters, and how much of the text spells it.
func (e *ecma) property() (name string, size int) {
	rest := e.text[e.at+2:]
	if !strings.HasPrefix(rest, "{") {
		_, size := utf8.DecodeRuneInString(rest)
		return rest[:size], 2 + size
	}
	name, _, _ = strings.Cut(rest[1:], "}")
	size = min(4+len(name), len(e.text)-e.at)
	for _, of := range []string{"Script=", "sc=", "General_Category=", "gc="} {
		name = strings.TrimPrefix(name, of)
	}
	return name, size
}

// propertySet are the characters of a property that RE2 does not know, as they stand in a class.
func propertySet(name string) string {
	var of []*unicode.RangeTable
	switch name {
	case "Alphabetic", "Alpha":
		of = []*unicode.RangeTable{unicode.L, unicode.Nl, unicode.Other_Alphabetic}
	case "Uppercase", "Upper":
		of = []*unicode.RangeTable{unicode.Lu, unicode.Other_Uppercase}
	case "Lowercase", "Lower":
		of = []*unicode.RangeTable{unicode.Ll, unicode.Other_Lowercase}
	case "White_Space", "space":
		of = []*unicode.RangeTable{unicode.White_Space}
	}
	var out strings.Builder
	add := func(lo, hi, stride uint32) {
		if stride == 1 {
			fmt.Fprintf(&out, `\x{%x}-\x{%x}`, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			fmt.Fprintf(&out, `\x{%x}`, r)
		}
	}
	for _, t := range of {
		for _, r := range t.R16 {
			add(uint32(r.Lo), uint32(r.Hi), uint32(r.Stride))
		}
		for _, r := range t.R32 {
			add(r.Lo, r.Hi, r.Stride)
		}
	}
	return out.String()
}

// ahead parts an expression that begins with look-ahead behind ^ into expressions that must match
// and such that must not: ^(?=A)(?!B)C is ^(?:A) and ^C and not ^(?:B).
func ahead(text string) (want, unwanted []string) {
	rest, anchored := strings.CutPrefix(text, "^")
	for anchored && (strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!")) {
		end, _ := closing(rest)
		if end < 0 {
			break
		}
		if inner := "^(?:" + rest[3:end] + ")"; rest[2] == '=' {
			want = append(want, inner)
		} else {
			unwanted = append(unwanted, inner)
		}
		rest = rest[end+1:]
	}
	if _, apart := closing("(" + rest + ")"); len(want)+len(unwanted) == 0 || apart {
		return []string{text}, nil // what look-ahead stands before is not all
	}
	if rest != "" {
		want = append(want, "^"+rest)
	}
	return want, unwanted
}

// closing is where the group that a text begins with ends, -1 where it does not, and whether it has
// alternatives.
func closing(text string) (end int, apart bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			for i++; i < len(text) && text[i] != ']'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(':
			depth++
		case '|':
			apart = apart || depth == 1
		case ')':
			if depth--; depth == 0 {
				return i, apart
			}
		}
	}
	return -1, apart
}
