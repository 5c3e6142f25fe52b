package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sandwich/runtime/jinja/internal/object"
)

type kind uint8

const (
	eof        kind = iota
	data            // text outside tags
	blockOpen       // {%
	blockClose      // %}
	printOpen       // {{
	printClose      // }}
	name
	quoted // a string literal, decoded
	integer
	decimal
	symbol
)

type token struct {
	kind kind
	text string
	line int
}

// lexer splits the source into tokens and removes the white space around tags as Jinja2 does.
type lexer struct {
	rest      string
	line      int
	lineStart bool // whether rest starts at the beginning of a line
	tokens    []token
}

func lex(source string) []token {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	l := &lexer{rest: strings.TrimSuffix(source, "\n"), line: 1, lineStart: true}
	for l.rest != "" {
		l.next()
	}
	l.add(eof, "")
	return l.tokens
}

func (l *lexer) add(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

func (l *lexer) fail(format string, args ...any) {
	object.Fail("line %d: "+format, append([]any{l.line}, args...)...)
}

// skip advances by n bytes and returns them.
func (l *lexer) skip(n int) string {
	s := l.rest[:n]
	l.rest = l.rest[n:]
	l.line += strings.Count(s, "\n")
	if n > 0 {
		l.lineStart = s[n-1] == '\n'
	}
	return s
}

// next reads the text before the next tag, and the tag.
func (l *lexer) next() {
	at := opening(l.rest)
	if at == len(l.rest) {
		l.add(data, l.skip(at))
		return
	}
	text, tag := l.rest[:at], l.rest[at:at+2]
	sign := byte(0)
	if after := l.rest[at+2:]; after != "" && (after[0] == '-' || after[0] == '+') {
		sign = after[0]
	}
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, object.IsSpace)
	case sign == 0 && tag != "{{": // lstrip_blocks
		start := strings.LastIndexByte(text, '\n') + 1
		if (start > 0 || l.lineStart) && strings.TrimFunc(text[start:], object.IsSpace) == "" {
			text = text[:start]
		}
	}
	if text != "" {
		l.add(data, text)
	}
	l.skip(at + 2)
	if sign != 0 {
		l.skip(1)
	}
	switch tag {
	case "{#":
		l.comment()
	case "{{":
		l.add(printOpen, tag)
		l.tag(printClose, "}}")
	default:
		if !l.raw() {
			l.add(blockOpen, tag)
			l.tag(blockClose, "%}")
		}
	}
}

// opening returns the position of the first tag of s, or len(s).
func opening(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return len(s)
		}
		from += i + 1
		if c := s[from]; c == '{' || c == '%' || c == '#' {
			return from - 1
		}
	}
}

func (l *lexer) comment() {
	end := strings.Index(l.rest, "#}")
	if end < 0 {
		l.fail("a comment is not closed")
	}
	if end > 0 && strings.IndexByte("-+", l.rest[end-1]) >= 0 {
		end--
	}
	l.skip(end)
	l.close("#}")
}

// close reads the end of a tag with its sign, and the white space that it removes. It returns false
// if rest does not start with the end of a tag.
func (l *lexer) close(brackets string) bool {
	switch {
	case strings.HasPrefix(l.rest, "-"+brackets):
		l.skip(3)
		l.skip(len(l.rest) - len(strings.TrimLeftFunc(l.rest, object.IsSpace)))
	case brackets != "}}" && strings.HasPrefix(l.rest, "+"+brackets):
		l.skip(3)
	case strings.HasPrefix(l.rest, brackets):
		l.skip(2)
		if brackets != "}}" && strings.HasPrefix(l.rest, "\n") { // trim_blocks
			l.skip(1)
		}
	default:
		return false
	}
	return true
}

// raw reads a whole raw block after its opening bracket. It returns false if the tag is not raw.
func (l *lexer) raw() bool {
	after, ok := strings.CutPrefix(strings.TrimLeftFunc(l.rest, object.IsSpace), "raw")
	after = strings.TrimLeftFunc(after, object.IsSpace)
	if !ok || !strings.HasPrefix(after, "%}") && !strings.HasPrefix(after, "-%}") {
		return false
	}
	l.skip(len(l.rest) - len(after))
	if l.rest[0] == '-' {
		l.close("%}")
	} else {
		l.skip(2)
	}
	for from := 0; ; {
		at := strings.Index(l.rest[from:], "{%")
		if at < 0 {
			l.fail("a raw block is not closed")
		}
		at += from
		from = at + 2
		sign := l.rest[from : from+min(1, len(l.rest)-from)]
		inner := strings.TrimLeftFunc(strings.TrimLeft(l.rest[from:], "-+"), object.IsSpace)
		after, ok := strings.CutPrefix(inner, "endraw")
		if !ok {
			continue
		}
		text, start := l.rest[:at], strings.LastIndexByte(l.rest[:at], '\n')+1
		switch {
		case sign == "-":
			text = strings.TrimRightFunc(text, object.IsSpace)
		case sign != "+" && start > 0 && strings.TrimFunc(text[start:], object.IsSpace) == "":
			text = text[:start]
		}
		l.add(data, text)
		l.skip(len(l.rest) - len(strings.TrimLeftFunc(after, object.IsSpace)))
		if !l.close("%}") {
			l.fail("unexpected text after endraw")
		}
		return true
	}
}

// tag reads the tokens of a tag and its closing bracket, which is recognized only outside other
// brackets.
func (l *lexer) tag(closing kind, brackets string) {
	for nested := 0; ; {
		l.skip(len(l.rest) - len(strings.TrimLeftFunc(l.rest, object.IsSpace)))
		if l.rest == "" {
			l.fail("a tag is not closed")
		}
		if nested == 0 && l.close(brackets) {
			l.add(closing, brackets)
			return
		}
		switch c := l.rest[0]; {
		case c == '\'' || c == '"':
			l.quoted(c)
		case c >= '0' && c <= '9':
			l.number()
		case c == '_' || startsName(l.rest):
			end := strings.IndexFunc(l.rest, func(r rune) bool {
				return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
			})
			if end < 0 {
				end = len(l.rest)
			}
			l.add(name, l.rest[:end])
			l.skip(end)
		default:
			nested += l.symbol()
		}
	}
}

func startsName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

// symbol reads an operator and returns the change of the bracket depth.
func (l *lexer) symbol() int {
	n := 1
	switch two := l.rest[:min(2, len(l.rest))]; two {
	case "//", "**", "==", "!=", ">=", "<=":
		n = 2
	}
	s := l.rest[:n]
	if n == 1 && !strings.Contains("+-/*%~[](){}><=.:|,;", s) {
		r, _ := utf8.DecodeRuneInString(l.rest)
		l.fail("unexpected character %q in a tag", r)
	}
	l.add(symbol, s)
	l.skip(n)
	switch s {
	case "(", "[", "{":
		return 1
	case ")", "]", "}":
		return -1
	}
	return 0
}

func (l *lexer) number() {
	digits := func(i int) int {
		for i < len(l.rest) && (l.rest[i] >= '0' && l.rest[i] <= '9' || l.rest[i] == '_') {
			i++
		}
		return i
	}
	starts := func(i int) bool { return i < len(l.rest) && l.rest[i] >= '0' && l.rest[i] <= '9' }
	k, end := integer, digits(0)
	afterDot := len(l.tokens) > 0 && l.tokens[len(l.tokens)-1] == token{symbol, ".", l.line}
	if l.rest[0] == '0' && end == 1 && len(l.rest) > 1 && strings.IndexByte("xXbBoO", l.rest[1]) >= 0 {
		end = 2
		for end < len(l.rest) && (isHex(l.rest[end]) || l.rest[end] == '_') {
			end++
		}
	} else if !afterDot {
		if end < len(l.rest) && l.rest[end] == '.' && starts(end+1) {
			k, end = decimal, digits(end+1)
		}
		if end < len(l.rest) && (l.rest[end] == 'e' || l.rest[end] == 'E') {
			exponent := end + 1
			if exponent < len(l.rest) && strings.IndexByte("+-", l.rest[exponent]) >= 0 {
				exponent++
			}
			if starts(exponent) {
				k, end = decimal, digits(exponent)
			}
		}
	}
	l.add(k, l.rest[:end])
	l.skip(end)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
