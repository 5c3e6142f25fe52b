package main

import (
	"context"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
	"sandwich/runtime/tokenizer"
)

// grammarVocab is the vocabulary as grammars see it: control tokens have no text there.
func grammarVocab(tok *tokenizer.Tokenizer) *grammar.Vocab {
	text := make([][]byte, tok.Vocab())
	var ends []int32
	for id := range int32(len(text)) {
		switch {
		case tok.IsEOG(id):
			ends = append(ends, id)
		case !tok.IsControl(id):
			text[id] = tok.Piece(id)
		}
	}
	return grammar.NewVocab(text, ends)
}

// largeGrammar is the length in bytes from which grammars are compiled one at a time.
const largeGrammar = 64 << 10

// constraint holds an answer to its format; nil where any text will do. Large grammars are compiled
// one at a time.
func (g *generator) constraint(ctx context.Context, f api.Format) (api.Constraint, error) {
	if f.Kind == api.FreeText {
		return nil, nil
	}
	if len(f.Text) >= largeGrammar {
		select {
		case g.large <- struct{}{}:
			defer func() { <-g.large }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	compiled, err := compileFormat(f)
	if err != nil {
		return nil, &api.InvalidError{Param: f.Param, Message: "cannot be used: " + printable(err.Error())}
	}
	return compiled.Matcher(g.vocab()), nil
}

func compileFormat(f api.Format) (*grammar.Grammar, error) {
	switch f.Kind {
	case api.JSONSchema:
		return grammar.FromSchema([]byte(f.Text))
	case api.GBNF:
		return grammar.FromGBNF(f.Text)
	}
	return grammar.AnyObject(), nil
}
