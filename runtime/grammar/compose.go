package grammar

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Piece is a set of texts that Compose makes a grammar of: what stands before, between and behind
// the JSON of an answer that calls tools.
type Piece func(b *builder) (expr, error)

// Exactly is one text.
func Exactly(text string) Piece {
	return func(*builder) (expr, error) { return literal(text), nil }
}

// Control is a control token of the vocabulary, by its spelling (NewVocab).
func Control(spelling string) Piece { return Exactly(ControlMark + spelling) }

// InOrder is one after the other, OneOf is any of them, Optional is the piece or nothing.
func InOrder(pieces ...Piece) Piece {
	return func(b *builder) (expr, error) {
		all, err := writeAll(b, pieces)
		return sequence(all), err
	}
}

// OneOf is any of the pieces.
func OneOf(pieces ...Piece) Piece {
	return func(b *builder) (expr, error) {
		all, err := writeAll(b, pieces)
		return choice(all), err
	}
}

func writeAll(b *builder, pieces []Piece) (all []expr, err error) {
	for _, p := range pieces {
		e, err := p(b)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// Optional is the piece, or nothing.
func Optional(p Piece) Piece { return OneOf(Exactly(""), p) }

// AnyNumber is the piece, any number of times.
func AnyNumber(p Piece) Piece {
	return func(b *builder) (expr, error) {
		e, err := p(b)
		return star(e), err
	}
}

// Matching is the JSON that a part of a schema allows, as Schema.Matching reads it. Keywords that
// are not supported are refused.
func Matching(schema []byte, path string) Piece {
	return func(b *builder) (expr, error) {
		return NewSchema(schema, nil).Matching(path)(b)
	}
}

// maxMarkers bounds the characters of all markers of Without.
const maxMarkers = 4096

// Without is any text, the empty one too, in which none of the markers appears. The text may end
// within a marker. It is the automaton of Aho and Corasick (Efficient string matching, 1975) over
// characters, without the states in which a marker has ended.
func Without(markers ...string) Piece {
	return func(b *builder) (expr, error) {
		if n := len(strings.Join(markers, "")); n > maxMarkers || slices.Contains(markers, "") {
			return nil, refuse("", "markers take 1 to %d bytes, not %d", maxMarkers, n)
		}
		return call{b.without(markers, 0)}, nil
	}
}

// without is the rule of texts without the markers, of 0 or 1 characters at least.
func (b *builder) without(markers []string, least int) ruleID {
	prefixes, letters := []string{""}, runes{}
	for _, m := range markers {
		for i, r := range m {
			letters = append(letters, runeRange{r, r})
			if i > 0 {
				prefixes = append(prefixes, m[:i])
			}
		}
	}
	slices.Sort(prefixes)
	prefixes = slices.Compact(prefixes)
	letters = letters.inOrder()
	others := anyRune.except(letters)
	r := b.rule("")
	b.define(r, automaton(func(b *builder, from, to int32) {
		at := map[string]int32{}
		for _, p := range prefixes {
			at[p] = b.state()
			b.eps(at[p], to)
		}
		goOn := func(from int32, p string) {
			b.writeRunes(others, from, at[""])
			for _, l := range letters {
				for c := l.lo; c <= l.hi; c++ {
					if next, ok := longestPrefix(p+string(c), markers); ok {
						b.writeRunes(runes{{c, c}}, from, at[next])
					}
				}
			}
		}
		if least == 0 {
			b.eps(from, at[""])
		} else {
			first := b.state() // that nothing comes back to
			b.eps(from, first)
			goOn(first, "")
		}
		for _, p := range prefixes {
			goOn(at[p], p)
		}
	}))
	return r
}

// longestPrefix is the longest suffix of text that begins a marker; false where a marker ends text.
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

// NotBeginning is any text, the empty one too, whose first character that is no white space is none
// of these.
func NotBeginning(with string) Piece {
	return func(b *builder) (expr, error) {
		blank := runes{{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}
		never := slices.Clone(blank)
		for _, r := range with {
			never = append(never, runeRange{r, r})
		}
		free := anyRune.except(never.inOrder())
		return sequence{star(blank), optional(sequence{free, star(anyRune)})}, nil
	}
}

// Compose makes a grammar of a piece. Its errors are those of FromSchema.
func Compose(p Piece) (*Grammar, error) { return NewMeter(context.Background(), Limits{}).Compose(p) }

// Compose is the function Compose within the limits of the Meter.
func (m *Meter) Compose(p Piece) (*Grammar, error) {
	for {
		g, err := m.compose(p, false)
		var e, located *Error
		if !errors.As(err, &e) || e.schema == nil {
			return g, err
		}
		if e.none && !e.located {
			if _, again := m.compose(p, true); errors.As(again, &located) && located.schema != nil {
				e, err = located, again
			}
		}
		if !e.schema.relax(e, "", true) {
			return nil, err
		}
	}
}

func (m *Meter) compose(p Piece, diagnosing bool) (*Grammar, error) {
	m.begin()
	b := newBuilder(m)
	b.diagnosing = diagnosing
	var e expr
	err := guard(func() (err error) {
		e, err = p(b)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	root := b.rule("")
	b.define(root, e)
	program, err := b.link(root)
	if err != nil {
		return nil, err
	}
	return newGrammar(program, m), nil
}
