package grammar

import (
	"context"
	"errors"
	"slices"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema"
)

// Piece is a set of texts from which Compose builds a grammar, such as the text before, between and
// after the JSON of tool calls.
type Piece func(b *automaton.Builder) (automaton.Expr, error)

// Exactly returns the piece with one text.
func Exactly(text string) Piece {
	return func(*automaton.Builder) (automaton.Expr, error) { return automaton.Literal(text), nil }
}

// Control returns the piece with one control token of the vocabulary, given its spelling
// (NewVocab).
func Control(spelling string) Piece { return Exactly(ControlMark + spelling) }

// InOrder returns the concatenation of pieces.
func InOrder(pieces ...Piece) Piece {
	return func(b *automaton.Builder) (automaton.Expr, error) {
		all, err := writeAll(b, pieces)
		return automaton.Sequence(all), err
	}
}

// OneOf returns the union of pieces.
func OneOf(pieces ...Piece) Piece {
	return func(b *automaton.Builder) (automaton.Expr, error) {
		all, err := writeAll(b, pieces)
		return automaton.Choice(all), err
	}
}

func writeAll(b *automaton.Builder, pieces []Piece) (all []automaton.Expr, err error) {
	for _, p := range pieces {
		e, err := p(b)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// Optional returns the piece with the texts of p and the empty text.
func Optional(p Piece) Piece { return OneOf(Exactly(""), p) }

// AnyNumber returns the piece with zero or more texts of p, concatenated.
func AnyNumber(p Piece) Piece {
	return func(b *automaton.Builder) (automaton.Expr, error) {
		e, err := p(b)
		return automaton.Star(e), err
	}
}

// Matching returns the piece with the JSON texts that a part of a schema allows; path is a JSON
// pointer. Unsupported keywords are errors.
func Matching(text []byte, path string) Piece {
	return func(b *automaton.Builder) (automaton.Expr, error) {
		return schema.NewSchema(text, nil).Matching(path)(b)
	}
}

// maxMarkers is the largest total length in bytes of the markers of Without.
const maxMarkers = 4096

// Without returns the piece with all texts, including the empty one, that contain none of the
// markers. A text may end with part of a marker. The automaton is that of Aho and Corasick
// (Efficient string matching, 1975) over characters, without the states in which a marker is
// complete.
func Without(markers ...string) Piece {
	return func(b *automaton.Builder) (automaton.Expr, error) {
		if n := len(strings.Join(markers, "")); n > maxMarkers || slices.Contains(markers, "") {
			return nil, automaton.Refuse("", "markers have %d bytes; give 1 to %d bytes and no empty marker", n,
				maxMarkers)
		}
		return automaton.Call{Rule: without(b, markers, 0)}, nil
	}
}

// without adds the rule for texts of at least minimum (0 or 1) characters that contain no marker.
func without(b *automaton.Builder, markers []string, minimum int) automaton.RuleID {
	prefixes, letters := []string{""}, automaton.Runes{}
	for _, m := range markers {
		for i, r := range m {
			letters = append(letters, automaton.RuneRange{Lo: r, Hi: r})
			if i > 0 {
				prefixes = append(prefixes, m[:i])
			}
		}
	}
	slices.Sort(prefixes)
	prefixes = slices.Compact(prefixes)
	letters = letters.InOrder()
	others := automaton.AnyRune.Except(letters)
	r := b.Rule("")
	b.Define(r, automaton.Automaton(func(b *automaton.Builder, from, to int32) {
		at := map[string]int32{}
		for _, p := range prefixes {
			at[p] = b.State()
			b.Eps(at[p], to)
		}
		goOn := func(from int32, p string) {
			b.WriteRunes(others, from, at[""])
			for _, l := range letters {
				for c := l.Lo; c <= l.Hi; c++ {
					if next, ok := longestPrefix(p+string(c), markers); ok {
						b.WriteRunes(automaton.Runes{{Lo: c, Hi: c}}, from, at[next])
					}
				}
			}
		}
		if minimum == 0 {
			b.Eps(from, at[""])
		} else {
			first := b.State() // no edge leads back to it
			b.Eps(from, first)
			goOn(first, "")
		}
		for _, p := range prefixes {
			goOn(at[p], p)
		}
	}))
	return r
}

// longestPrefix returns the longest suffix of text that is a prefix of a marker. It returns false
// if text ends with a marker.
func longestPrefix(text string, markers []string) (string, bool) {
	for i := range len(text) {
		if slices.Contains(markers, text[i:]) {
			return "", false
		}
	}
	for i := range len(text) {
		if slices.ContainsFunc(markers, func(m string) bool { return strings.HasPrefix(m, text[i:]) }) {
			return text[i:], true
		}
	}
	return "", true
}

// NotBeginning returns the piece with all texts, including the empty one, whose first character
// other than white space is not in with.
func NotBeginning(with string) Piece {
	return func(b *automaton.Builder) (automaton.Expr, error) {
		blank := automaton.Runes{{Lo: '\t', Hi: '\n'}, {Lo: '\r', Hi: '\r'}, {Lo: ' ', Hi: ' '}}
		never := slices.Clone(blank)
		for _, r := range with {
			never = append(never, automaton.RuneRange{Lo: r, Hi: r})
		}
		free := automaton.AnyRune.Except(never.InOrder())
		return automaton.Sequence{automaton.Star(blank), automaton.Optional(automaton.Sequence{free,
			automaton.Star(automaton.AnyRune)})}, nil
	}
}

// Compose compiles a piece with default limits. Its errors are those of Meter.FromSchema.
func Compose(p Piece) (*Grammar, error) { return NewMeter(context.Background(), Limits{}).Compose(p) }

// Compose compiles a piece.
func (m *Meter) Compose(p Piece) (*Grammar, error) {
	for {
		g, err := m.compose(p, false)
		var e, located *automaton.Error
		if !errors.As(err, &e) || schema.Owner(e) == nil {
			return g, err
		}
		if e.None && !e.Located {
			if _, again := m.compose(p, true); errors.As(again, &located) && schema.Owner(located) != nil {
				e, err = located, again
			}
		}
		if !schema.Owner(e).Relax(e, "", true) {
			return nil, err
		}
	}
}

func (m *Meter) compose(p Piece, diagnosing bool) (*Grammar, error) {
	m.Begin()
	b := automaton.NewBuilder(m.Meter)
	b.Diagnosing = diagnosing
	var e automaton.Expr
	err := automaton.Guard(func() (err error) {
		e, err = p(b)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	root := b.Rule("")
	b.Define(root, e)
	program, err := b.Link(root)
	if err != nil {
		return nil, err
	}
	return newGrammar(program, m.memory), nil
}
