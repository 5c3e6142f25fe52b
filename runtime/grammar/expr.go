package grammar

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// expr is a set of byte strings.
type expr interface{}

type (
	// empty is the set with the empty string; nothing is the empty set.
	empty   struct{}
	nothing struct{}
	// literal is the set with one string.
	literal string
	// words is a set of strings. Shared prefixes are matched once.
	words []string
	// runes is the set of characters in sorted, disjoint ranges, encoded as UTF-8.
	runes []runeRange
	// sequence is the concatenation of expressions, choice their union.
	sequence []expr
	choice   []expr
	// repeat is least to most repetitions of body; most < 0 means no limit.
	repeat struct {
		body        expr
		least, most int
	}
	// call is the set of a rule of the grammar.
	call struct{ rule ruleID }
	// automaton is a function that writes its states.
	automaton func(b *builder, from, to int32)
)

type runeRange struct{ lo, hi rune }

// ruleID is the number of a rule of a builder.
type ruleID int

// anyRune is the set of all valid characters.
var anyRune = runes{{0, 0xD7FF}, {0xE000, utf8.MaxRune}}

func optional(e expr) expr { return repeat{e, 0, 1} }

func star(e expr) expr { return repeat{e, 0, -1} }

// except returns the characters of r that are not in x. x must be sorted.
func (r runes) except(x runes) runes {
	var out runes
	for _, a := range r {
		lo := a.lo
		for _, b := range x {
			if b.hi < lo || b.lo > a.hi {
				continue
			}
			if b.lo > lo {
				out = append(out, runeRange{lo, b.lo - 1})
			}
			lo = b.hi + 1
		}
		if lo <= a.hi {
			out = append(out, runeRange{lo, a.hi})
		}
	}
	return out
}

// both returns the intersection of r and x.
func (r runes) both(x runes) runes {
	var out runes
	for _, a := range r {
		for _, b := range x {
			if lo, hi := max(a.lo, b.lo), min(a.hi, b.hi); lo <= hi {
				out = append(out, runeRange{lo, hi})
			}
		}
	}
	return out
}

// inOrder sorts ranges and joins adjacent ones. It changes r.
func (r runes) inOrder() runes {
	slices.SortFunc(r, func(a, b runeRange) int { return int(a.lo - b.lo) })
	var out runes
	for _, a := range r {
		if n := len(out); n > 0 && a.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, a.hi)
			continue
		}
		out = append(out, a)
	}
	return out
}

// byteRange is the label of an edge: any byte from lo to hi.
type byteRange struct{ lo, hi byte }

// utf8Ranges calls yield with sequences of byte ranges that together match exactly the encodings of
// the characters from lo to hi, without surrogates.
func utf8Ranges(lo, hi rune, yield func([]byteRange)) {
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
		yield([]byteRange{{byte(lo), byte(hi)}})
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
	out := make([]byteRange, len(a))
	for i := range a {
		out[i] = byteRange{a[i], b[i]}
	}
	yield(out)
}

// Error reports why a grammar was refused. Path is a JSON pointer into a schema, a line of GBNF, or
// empty.
type Error struct {
	Path, Message string
	none          bool  // no value satisfies the schema
	limit         bool  // a limit of the Meter was exceeded, or its context ended
	cause         error // error of the context
	owner         any   // the *Schema that the error refers to; nil for none
	located       bool  // Path is that of the smallest unsatisfiable part
}

// Unwrap returns the error of the context that ended the compilation, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Limited reports whether a limit of the Meter was exceeded. The grammar may compile with larger
// limits.
func (e *Error) Limited() bool { return e.limit && e.cause == nil }

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// unsatisfied returns the error for a schema that no value satisfies.
func unsatisfied(path, format string, args ...any) *Error {
	e := refuse(path, "no value satisfies the schema: "+format, args...)
	e.none = true
	return e
}

func refuse(path, format string, args ...any) *Error {
	return &Error{Path: path, Message: fmt.Sprintf(format, args...)}
}
