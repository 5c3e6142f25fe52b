package jinja

import (
	"strconv"
	"strings"
)

// quoted reads a string literal.
func (l *lexer) quoted(quote byte) {
	end := 1
	for ; end < len(l.rest) && l.rest[end] != quote; end++ {
		if l.rest[end] == '\\' {
			end++
		}
	}
	if end >= len(l.rest) {
		l.fail("a string is not closed")
	}
	l.add(quoted, unescape(l.rest[1:end]))
	l.skip(end + 1)
}

var simpleEscapes = map[byte]string{'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f",
	'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

// unescape decodes backslash escapes as Python does: it keeps an unknown escape unchanged.
func unescape(s string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		if text, ok := simpleEscapes[c]; ok {
			out.WriteString(text)
			continue
		}
		digits, base := 0, 16
		switch c {
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			digits, base = octalDigits(s), 8
		}
		code, err := strconv.ParseUint(s[:min(digits, len(s))], base, 32)
		if base == 8 {
			code, err = strconv.ParseUint(string(c)+s[:digits], 8, 32)
		}
		if err != nil || digits > len(s) || code > 0x10FFFF {
			out.Write([]byte{'\\', c})
			continue
		}
		out.WriteRune(rune(code))
		s = s[digits:]
	}
}

// octalDigits returns the number of digits at the start of s that continue an octal escape after
// its first digit.
func octalDigits(s string) int {
	n := 0
	for n < 2 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
		n++
	}
	return n
}
