package automaton

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Expr is a set of byte strings.
type Expr interface{}

type (
	// Empty is the set with the empty string; nothing is the empty set.
	Empty   struct{}
	Nothing struct{}
	// Literal is the set with one string.
	Literal string
	// Words is a set of strings. Shared prefixes are matched once.
	Words []string
	// Runes is the set of characters in sorted, disjoint ranges, encoded as UTF-8.
	Runes []RuneRange
	// Sequence is the concatenation of expressions, choice their union.
	Sequence []Expr
	Choice   []Expr
	// Repeat is least to most repetitions of body; most < 0 means no limit.
	Repeat struct {
		Body        Expr
		Least, Most int
	}
	// Call is the set of a rule of the grammar.
	Call struct{ Rule RuleID }
	// Automaton is a function that writes its states.
	Automaton func(b *Builder, from, to int32)
)

// RuneRange is the range of characters from Lo to Hi.
type RuneRange struct{ Lo, Hi rune }

// RuleID is the number of a rule of a builder.
type RuleID int

// AnyRune is the set of all valid characters.
var AnyRune = Runes{{0, 0xD7FF}, {0xE000, utf8.MaxRune}}

// Optional returns zero or one repetition of e.
func Optional(e Expr) Expr { return Repeat{e, 0, 1} }

// Star returns any number of repetitions of e.
func Star(e Expr) Expr { return Repeat{e, 0, -1} }

// Except returns the characters of r that are not in x. x must be sorted.
func (r Runes) Except(x Runes) Runes {
	var out Runes
	for _, a := range r {
		lo := a.Lo
		for _, b := range x {
			if b.Hi < lo || b.Lo > a.Hi {
				continue
			}
			if b.Lo > lo {
				out = append(out, RuneRange{lo, b.Lo - 1})
			}
			lo = b.Hi + 1
		}
		if lo <= a.Hi {
			out = append(out, RuneRange{lo, a.Hi})
		}
	}
	return out
}

// Both returns the intersection of r and x.
func (r Runes) Both(x Runes) Runes {
	var out Runes
	for _, a := range r {
		for _, b := range x {
			if lo, hi := max(a.Lo, b.Lo), min(a.Hi, b.Hi); lo <= hi {
				out = append(out, RuneRange{lo, hi})
			}
		}
	}
	return out
}

// InOrder sorts ranges and joins adjacent ones. It changes r.
func (r Runes) InOrder() Runes {
	slices.SortFunc(r, func(a, b RuneRange) int { return int(a.Lo - b.Lo) })
	var out Runes
	for _, a := range r {
		if n := len(out); n > 0 && a.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, a.Hi)
			continue
		}
		out = append(out, a)
	}
	return out
}

// ByteRange is the label of an edge: any byte from lo to hi.
type ByteRange struct{ Lo, Hi byte }

// utf8Ranges calls yield with sequences of byte ranges that together match exactly the encodings of
// the characters from lo to hi, without surrogates.
func utf8Ranges(lo, hi rune, yield func([]ByteRange)) {
	if lo > hi {
		return
	}
	for _, edge := range [...]rune{0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF} {
		if lo <= edge && hi > edge {
			utf8Ranges(lo, edge, yield)
			utf8Ranges(edge+1, hi, yield)
			return
		}
	}
	if lo >= 0xD800 && lo <= 0xDFFF {
		return
	}
	if hi <= 0x7F {
		yield([]ByteRange{{byte(lo), byte(hi)}})
		return
	}
	for shift := 6; shift < 6*utf8.RuneLen(hi); shift += 6 {
		low := rune(1)<<shift - 1 // the bits in the trailing bytes
		if lo|low == hi|low {
			continue // the leading bytes are equal
		}
		if lo&low != 0 {
			utf8Ranges(lo, lo|low, yield)
			utf8Ranges((lo|low)+1, hi, yield)
			return
		}
		if hi&low != low {
			utf8Ranges(lo, hi&^low-1, yield)
			utf8Ranges(hi&^low, hi, yield)
			return
		}
	}
	a, b := utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi)
	out := make([]ByteRange, len(a))
	for i := range a {
		out[i] = ByteRange{a[i], b[i]}
	}
	yield(out)
}

// Error reports why a grammar was refused. Path is a JSON pointer into a schema, a line of GBNF, or
// empty.
type Error struct {
	Path, Message string
	None          bool  // no value satisfies the schema
	Limit         bool  // a limit of the Meter was exceeded, or its context ended
	cause         error // error of the context
	Owner         any   // the *Schema that the error refers to; nil for none
	Located       bool  // Path is that of the smallest unsatisfiable part
}

// Unwrap returns the error of the context that ended the compilation, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Limited reports whether a limit of the Meter was exceeded. The grammar may compile with larger
// limits.
func (e *Error) Limited() bool { return e.Limit && e.cause == nil }

// Error returns the path and the message.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Unsatisfied returns the error for a schema that no value satisfies.
func Unsatisfied(path, format string, args ...any) *Error {
	e := Refuse(path, "no value satisfies the schema: "+format, args...)
	e.None = true
	return e
}

// Refuse returns an Error with a formatted message.
func Refuse(path, format string, args ...any) *Error {
	return &Error{Path: path, Message: fmt.Sprintf(format, args...)}
}

// Clip shortens a text for an error message.
func Clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
