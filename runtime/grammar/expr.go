package grammar

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// expr is a set of byte strings.
type expr interface{}

type (
	// empty holds the empty string alone, nothing holds no string at all.
	empty   struct{}
	nothing struct{}
	// literal is one string.
	literal string
	// words is any of the strings; a prefix that several share is stepped through once.
	words []string
	// runes are the characters of sorted, disjoint ranges, encoded as UTF-8.
	runes []runeRange
	// sequence is one after the other, choice is any of them.
	sequence []expr
	choice   []expr
	// repeat is what body holds, least times at least and most times at most; most < 0: without
	// end.
	repeat struct {
		body        expr
		least, most int
	}
	// call is what a rule of the grammar holds.
	call struct{ rule ruleID }
	// automaton writes its states itself.
	automaton func(b *builder, from, to int32)
)

type runeRange struct{ lo, hi rune }

// ruleID is the number of a rule of a builder.
type ruleID int

// anyRune is every character that UTF-8 can say.
var anyRune = runes{{0, 0xD7FF}, {0xE000, utf8.MaxRune}}

func optional(e expr) expr { return repeat{e, 0, 1} }

func star(e expr) expr { return repeat{e, 0, -1} }

// except are the characters of r that are in none of the ranges of x.
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

// both are the characters that are in r and in x.
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

// inOrder sorts ranges and joins those that touch.
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

// byteRange is an edge: any byte from lo to hi.
type byteRange struct{ lo, hi byte }

// utf8Ranges calls yield with sequences of byte ranges whose products are the encodings of the
// characters from lo to hi, surrogates left out.
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
		low := rune(1)<<shift - 1 // of the bits that the last bytes hold
		if lo|low == hi|low {
			continue // these bytes alone differ
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

// Error refuses a grammar. Path is where: a JSON pointer into a schema, a line of GBNF, or empty.
type Error struct {
	Path, Message string
	none          bool  // no value satisfies the schema, which is no fault of an alternative
	limit         bool  // a limit of the Meter is exceeded, or its context ended
	cause         error // of the context
	schema        *Schema
	located       bool // Path is that of the smallest part that nothing satisfies
}

// Unwrap returns the error of the context that ended the compilation; nil where it did not end.
func (e *Error) Unwrap() error { return e.cause }

// Limited reports whether a limit of the Meter was exceeded: the grammar may be compiled under
// larger limits.
func (e *Error) Limited() bool { return e.limit && e.cause == nil }

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// unsatisfied refuses a schema that no value satisfies.
func unsatisfied(path, format string, args ...any) *Error {
	e := refuse(path, "nothing satisfies it: "+format, args...)
	e.none = true
	return e
}

func refuse(path, format string, args ...any) *Error {
	return &Error{Path: path, Message: fmt.Sprintf(format, args...)}
}
