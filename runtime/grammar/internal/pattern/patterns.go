// Package pattern compiles regular expressions of ECMA-262 to expressions of package automaton. It
// also matches them, lists their texts and intersects them.
package pattern

import (
	"regexp/syntax"

	"sandwich/runtime/grammar/internal/automaton"
)

// Patterns parses and matches the expressions of a grammar, for all of its schemas.
type Patterns struct {
	*automaton.Builder
	parsed map[patternKey]*pattern
	spent  int // steps of matching
}

// PatternsOf returns the patterns of a builder.
func PatternsOf(b *automaton.Builder) *Patterns {
	p, ok := b.Patterns.(*Patterns)
	if !ok {
		p = &Patterns{Builder: b, parsed: map[patternKey]*pattern{}}
		b.Patterns = p
	}
	return p
}

// pattern is a parsed expression, and its program once it is needed.
type pattern struct {
	re    *syntax.Regexp
	looks []look
	prog  *syntax.Prog
	whole *dfa // set if constants were matched with it
	// readers are the programs with the characters that they read.
	readers []*charReader
}

// look is a look-around assertion: an expression that must or must not match before or after a
// position.
type look struct {
	re          *syntax.Regexp
	prog        *syntax.Prog
	behind, not bool
}

// patternKey identifies a parsed expression; see ecma for wide.
type patternKey struct {
	text string
	wide bool
}

// expend charges steps of matching expressions.
func (b *Patterns) expend(n int) {
	b.spent += n
	b.Meter.Work(n)
}

// Texts is a set of JSON strings: those that match all expressions (ECMA-262) in want and none in
// unwanted, of least to most characters (most < 0 means no limit). It is recognized by the product
// of the expressions' deterministic automata, whose states are created on demand.
type Texts struct {
	Want, Unwanted []string
	Asked          []string // expressions whose matches sets reports
	Least, Most    int
	// If mod is positive, only texts whose number of characters has remainder rest modulo mod are
	// in the set.
	Mod, Rest int
}
