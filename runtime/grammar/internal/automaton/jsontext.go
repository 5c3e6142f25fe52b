package automaton

import (
	"fmt"
	"unicode/utf8"
)

// Escaped are the characters that must be escaped in a JSON string.
var Escaped = Runes{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}

// shortEscapes maps characters to their two-character escapes.
var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// AppendChar appends a character of a JSON string, escaped if necessary.
func AppendChar(to []byte, r rune) []byte {
	if e, ok := shortEscapes[r]; ok {
		return append(to, e...)
	}
	if r < 0x20 {
		return fmt.Appendf(to, `\u%04x`, r)
	}
	return utf8.AppendRune(to, r)
}

// InString returns an expression for characters in a JSON string: unescaped, or escaped if
// necessary.
func InString(r Runes) Expr {
	free := r.Except(Escaped)
	var w Words
	for _, x := range r.Both(Escaped) {
		for c := x.Lo; c <= x.Hi; c++ {
			w = append(w, string(AppendChar(nil, c)))
		}
	}
	if len(w) == 0 {
		return free
	}
	return Choice{free, escape{w}}
}

var (
	digit    = Runes{{'0', '9'}}
	nonzero  = Runes{{'1', '9'}}
	hexDigit = Runes{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}
)

// StringChar returns an expression for any character in a JSON string, in any spelling. A pair of
// surrogate escapes is one character.
func StringChar() Expr {
	hex := func(n int) Expr { return Repeat{hexDigit, n, n} }
	high := Sequence{Runes{{'D', 'D'}, {'d', 'd'}}, Runes{{'8', '9'}, {'A', 'B'}, {'a', 'b'}}, hex(2)}
	low := Sequence{Runes{{'D', 'D'}, {'d', 'd'}}, Runes{{'C', 'F'}, {'c', 'f'}}, hex(2)}
	basic := Choice{
		Sequence{Runes{{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}, hex(3)},
		Sequence{Runes{{'D', 'D'}, {'d', 'd'}}, Runes{{'0', '7'}}, hex(2)},
	}
	letters := Words{`"`, `\`, "/", "b", "f", "n", "r", "t"}
	unicode := Sequence{Literal("u"), Choice{basic, Sequence{high, Literal(`\u`), low}}}
	return Choice{AnyRune.Except(Escaped), escape{Sequence{Literal(`\`), Choice{letters, unicode}}}}
}

// Char returns a call of the rule for stringChar.
func (b *Builder) Char() Expr {
	if b.plain < 0 {
		b.plain = b.Rule("")
		b.Define(b.plain, Inner{StringChar()})
	}
	return Call{b.plain}
}

// Text returns an expression for a JSON string of lo to hi characters; hi < 0 means no
// limit.
func (b *Builder) Text(lo, hi int) Expr {
	if lo > 0 || hi >= 0 {
		return Inner{Sequence{Literal(`"`), Repeat{b.Char(), lo, hi}, Literal(`"`)}}
	}
	if b.quoted < 0 {
		b.quoted = b.Rule("")
		b.Define(b.quoted, Inner{Sequence{Literal(`"`), Star(StringChar()), Literal(`"`)}})
	}
	return Call{b.quoted}
}

// TextRest returns an expression for any number of characters of a JSON string, without quotes.
func (b *Builder) TextRest() Expr {
	if b.rest < 0 {
		b.rest = b.Rule("")
		b.Define(b.rest, Inner{Star(StringChar())})
	}
	return Call{b.rest}
}

// White space between JSON tokens is nothing, one space, or a line feed and indentation. It is
// limited so that an answer cannot consist of white space only.
const deepestIndent = 32

// Space returns a call of the rule for white space.
func (b *Builder) Space() Expr {
	if b.blank < 0 {
		b.blank = b.Rule("")
		indent := Repeat{Runes{{' ', ' '}}, 0, deepestIndent}
		b.Define(b.blank, Choice{Empty{}, Literal(" "), Sequence{Literal("\n"), indent}})
	}
	return Call{b.blank}
}

// Numbers without bounds have at most this many digits, so that no reader overflows.
const (
	integerDigits  = 15
	FractionDigits = 15
)

// Integer returns an expression for integers without bounds.
func (b *Builder) Integer() Expr {
	return Sequence{Optional(Literal("-")), Choice{Literal("0"), Sequence{nonzero, Repeat{digit, 0,
		integerDigits - 1}}}}
}

// Number returns an expression for numbers without bounds.
func (b *Builder) Number() Expr {
	fraction := Sequence{Literal("."), Repeat{digit, 1, FractionDigits}}
	exponent := Sequence{Runes{{'E', 'E'}, {'e', 'e'}}, Optional(Runes{{'+', '+'}, {'-', '-'}}), Repeat{digit, 1, 2}}
	return Sequence{b.Integer(), Optional(fraction), Optional(exponent)}
}

// AnyValue returns an expression for any JSON value.
func (b *Builder) AnyValue() Expr {
	if b.any < 0 {
		b.any = b.Rule("")
		b.Define(b.any, Choice{b.anyObject(), b.List(Call{b.any}, 0, -1), b.Text(0, -1), b.Number(),
			Words{"true", "false", "null"}})
	}
	return Call{b.any}
}

// anyObject returns an expression for any JSON object.
func (b *Builder) anyObject() Expr { return b.Table(b.Text(0, -1), b.AnyValue(), 0, -1) }

// Table returns an expression for an object of lo to hi members with the given names and
// values.
func (b *Builder) Table(name, value Expr, lo, hi int) Expr {
	m := Sequence{name, b.Space(), Literal(":"), b.Space(), value}
	return Sequence{Literal("{"), b.separated(m, lo, hi), b.Space(), Literal("}")}
}

// List returns an expression for an array of lo to hi items.
func (b *Builder) List(item Expr, lo, hi int) Expr {
	return Sequence{Literal("["), b.separated(item, lo, hi), b.Space(), Literal("]")}
}

// separated returns lo to hi items, separated by commas and preceded by white space.
func (b *Builder) separated(item Expr, lo, hi int) Expr {
	if hi == 0 {
		return Empty{}
	}
	more := Sequence{b.Space(), Literal(","), b.Space(), item}
	rest := hi
	if hi > 0 {
		rest--
	}
	some := Sequence{b.Space(), item, Repeat{more, max(lo-1, 0), rest}}
	if lo == 0 {
		return Choice{Empty{}, some}
	}
	return some
}
