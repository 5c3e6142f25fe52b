package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// escape reads an escape, inside or outside a class.
func (e *ecma) escape(inside, wide bool, begin int) error {
	if e.at+1 == len(e.text) {
		return fmt.Errorf("it ends with a backslash")
	}
	c := e.text[e.at+1]
	set := ""
	switch c {
	case 's':
		if set = narrowSpace; wide {
			set = wideSpace
		}
	case 'S':
		if set = narrowOther; wide {
			set = wideOther
		}
	case 'p', 'P':
		name, size := e.property()
		not := c == 'P'
		of, known := propertySet(name, wide != not)
		if !known {
			e.out = append(e.out, `\`+string(c)+"{"+name+"}"...)
			e.at += size
			e.last = begin
			return nil
		}
		if not {
			of = automaton.AnyRune.Except(of)
		}
		set = of.ClassText()
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
		if !inside {
			err := e.word(c == 'B')
			e.last = begin
			return err
		}
		if c == 'B' {
			return fmt.Errorf(`\B is not valid in a character class`)
		}
		set = `\x{8}`
	}
	size := 2
	switch {
	case set != "" && inside:
		e.out = append(e.out, set...)
		if rest := e.text[e.at+2:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			e.out = append(e.out, `\-`...) // a set cannot start a range
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

// plainEscape returns the length of an escape that RE2 and ECMA-262 read alike, or 0.
func plainEscape(text string) int {
	c := text[1]
	digits := func(set string, limit int) (n int) {
		for n < limit && 2+n < len(text) && strings.IndexByte(set, text[2+n]) >= 0 {
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

// number reads \uXXXX, a surrogate pair of two of them, or \u{X}.
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
		return fmt.Errorf(`\u needs four hexadecimal digits, or some in braces`)
	}
	if low, more := hex(e.at + size); more == 6 && size == 6 && utf16.DecodeRune(r, low) != unicode.ReplacementChar {
		r, size = utf16.DecodeRune(r, low), 12
	}
	e.out = fmt.Appendf(e.out, `\x{%x}`, r)
	e.at += size
	e.last = begin
	return nil
}

// property reads the name of a character property, and returns it with the length of the escape.
func (e *ecma) property() (name string, size int) {
	rest := e.text[e.at+2:]
	if !strings.HasPrefix(rest, "{") {
		_, size := utf8.DecodeRuneInString(rest)
		return rest[:size], 2 + size
	}
	name, _, _ = strings.Cut(rest[1:], "}")
	size = min(4+len(name), len(e.text)-e.at)
	for _, of := range []string{"Script=", "sc=", "General_Category=", "gc=",
		"Script_Extensions=", "scx="} {
		name = strings.TrimPrefix(name, of)
	}
	return name, size
}
