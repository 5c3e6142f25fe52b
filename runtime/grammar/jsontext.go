package grammar

import (
	"fmt"
	"unicode/utf8"
)

// escaped are the characters that must be escaped in a JSON string.
var escaped = runes{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}

// shortEscapes maps characters to their two-character escapes.
var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func appendChar(to []byte, r rune) []byte {
	if e, ok := shortEscapes[r]; ok {
		return append(to, e...)
	}
	if r < 0x20 {
		return fmt.Appendf(to, `\u%04x`, r)
	}
	return utf8.AppendRune(to, r)
}

// inString returns an expression for characters in a JSON string: unescaped, or escaped if
// necessary.
func inString(r runes) expr {
	free := r.except(escaped)
	var w words
	for _, x := range r.both(escaped) {
		for c := x.lo; c <= x.hi; c++ {
			w = append(w, string(appendChar(nil, c)))
		}
	}
	if len(w) == 0 {
		return free
	}
	return choice{free, escape{w}}
}

var (
	digit    = runes{{'0', '9'}}
	nonzero  = runes{{'1', '9'}}
	hexDigit = runes{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}
)

// stringChar returns an expression for any character in a JSON string, in any spelling. A pair of
// surrogate escapes is one character.
func stringChar() expr {
	hex := func(n int) expr { return repeat{hexDigit, n, n} }
	high := sequence{runes{{'D', 'D'}, {'d', 'd'}}, runes{{'8', '9'}, {'A', 'B'}, {'a', 'b'}}, hex(2)}
	low := sequence{runes{{'D', 'D'}, {'d', 'd'}}, runes{{'C', 'F'}, {'c', 'f'}}, hex(2)}
	basic := choice{
		sequence{runes{{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}, hex(3)},
		sequence{runes{{'D', 'D'}, {'d', 'd'}}, runes{{'0', '7'}}, hex(2)},
	}
	letters := words{`"`, `\`, "/", "b", "f", "n", "r", "t"}
	unicode := sequence{literal("u"), choice{basic, sequence{high, literal(`\u`), low}}}
	return choice{anyRune.except(escaped), escape{sequence{literal(`\`), choice{letters, unicode}}}}
}

// char returns a call of the rule for stringChar.
func (b *builder) char() expr {
	if b.plain < 0 {
		b.plain = b.rule("")
		b.define(b.plain, inner{stringChar()})
	}
	return call{b.plain}
}

// text returns an expression for a JSON string of least to most characters; most < 0 means no
// limit.
func (b *builder) text(least, most int) expr {
	if least > 0 || most >= 0 {
		return inner{sequence{literal(`"`), repeat{b.char(), least, most}, literal(`"`)}}
	}
	if b.quoted < 0 {
		b.quoted = b.rule("")
		b.define(b.quoted, inner{sequence{literal(`"`), star(stringChar()), literal(`"`)}})
	}
	return call{b.quoted}
}

// textRest returns an expression for any number of characters of a JSON string, without quotes.
func (b *builder) textRest() expr {
	if b.rest < 0 {
		b.rest = b.rule("")
		b.define(b.rest, inner{star(stringChar())})
	}
	return call{b.rest}
}

// White space between JSON tokens is nothing, one space, or a line feed and indentation. It is
// limited so that an answer cannot consist of white space only.
const deepestIndent = 32

func (b *builder) space() expr {
	if b.blank < 0 {
		b.blank = b.rule("")
		indent := repeat{runes{{' ', ' '}}, 0, deepestIndent}
		b.define(b.blank, choice{empty{}, literal(" "), sequence{literal("\n"), indent}})
	}
	return call{b.blank}
}

// Numbers without bounds have at most this many digits, so that no reader overflows.
const (
	integerDigits  = 15
	fractionDigits = 15
)

func (b *builder) integer() expr {
	return sequence{optional(literal("-")), choice{literal("0"), sequence{nonzero, repeat{digit, 0,
		integerDigits - 1}}}}
}

func (b *builder) number() expr {
	fraction := sequence{literal("."), repeat{digit, 1, fractionDigits}}
	exponent := sequence{runes{{'E', 'E'}, {'e', 'e'}}, optional(runes{{'+', '+'}, {'-', '-'}}), repeat{digit, 1, 2}}
	return sequence{b.integer(), optional(fraction), optional(exponent)}
}

// anyValue returns an expression for any JSON value.
func (b *builder) anyValue() expr {
	if b.any < 0 {
		b.any = b.rule("")
		b.define(b.any, choice{b.anyObject(), b.list(call{b.any}, 0, -1), b.text(0, -1), b.number(),
			words{"true", "false", "null"}})
	}
	return call{b.any}
}

// anyObject returns an expression for any JSON object.
func (b *builder) anyObject() expr { return b.table(b.text(0, -1), b.anyValue(), 0, -1) }

// table returns an expression for an object of least to most members with the given names and
// values.
func (b *builder) table(name, value expr, least, most int) expr {
	m := sequence{name, b.space(), literal(":"), b.space(), value}
	return sequence{literal("{"), b.separated(m, least, most), b.space(), literal("}")}
}

// list returns an expression for an array of least to most items.
func (b *builder) list(item expr, least, most int) expr {
	return sequence{literal("["), b.separated(item, least, most), b.space(), literal("]")}
}

// separated returns least to most items, separated by commas and preceded by white space.
func (b *builder) separated(item expr, least, most int) expr {
	if most == 0 {
		return empty{}
	}
	more := sequence{b.space(), literal(","), b.space(), item}
	rest := most
	if most > 0 {
		rest--
	}
	some := sequence{b.space(), item, repeat{more, max(least-1, 0), rest}}
	if least == 0 {
		return choice{empty{}, some}
	}
	return some
}
