package answer

import (
	"bytes"
	"context"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
	"sandwich/runtime/tokenizer"
)

// Vocab is the vocabulary as grammars see it: control tokens stand behind a mark, which no
// other token has.
func Vocab(tok *tokenizer.Tokenizer) *grammar.Vocab {
	text := make([][]byte, tok.Vocab())
	var ends []int32
	for id := range int32(len(text)) {
		switch {
		case tok.IsEOG(id):
			ends = append(ends, id)
			text[id] = append([]byte(grammar.ControlMark), tok.Piece(id)...) // for errors that name it
		case tok.IsControl(id):
			text[id] = append([]byte(grammar.ControlMark), tok.Piece(id)...)
		case !bytes.Contains(tok.Piece(id), []byte(grammar.ControlMark)):
			text[id] = tok.Piece(id)
		}
	}
	return grammar.NewVocab(text, ends)
}

// largeGrammar is the length in bytes from which grammars are compiled one at a time.
const largeGrammar = 64 << 10

// constraint holds an answer to its format, or to one of the calls that it may make; nil where any
// text will do. Whoever gets one puts it back when the answer is over.
func (g *Generator) constraint(ctx context.Context, r *api.Request, thinking bool) (*held, error) {
	if r.Format.Kind == api.FreeText && !mayCall(r) {
		return nil, nil
	}
	return g.forms.take(ctx, keyOf(r, thinking), g.vocab, func() (*grammar.Grammar, error) {
		return g.compile(ctx, r, thinking)
	})
}

// compile makes the grammar of an answer. Large ones are compiled one at a time.
func (g *Generator) compile(ctx context.Context, r *api.Request, thinking bool) (*grammar.Grammar, error) {
	size := len(r.Format.Text)
	for _, t := range r.Tools {
		size += len(t.Parameters)
	}
	if size >= largeGrammar {
		select {
		case g.large <- struct{}{}:
			defer func() { <-g.large }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if mayCall(r) {
		return g.callGrammar(r, thinking)
	}
	compiled, err := compileFormat(r.Format, g.vocab)
	if err != nil {
		return nil, unusable(r.Format.Param, err)
	}
	return compiled, nil
}

// unusable refuses a field; what is wrong with it may quote it.
func unusable(param string, err error) error {
	return &api.InvalidError{Param: param, Message: "cannot be used: " + api.Printable(err.Error(), "")}
}

func compileFormat(f api.Format, vocab func() *grammar.Vocab) (*grammar.Grammar, error) {
	switch f.Kind {
	case api.JSONSchema:
		return grammar.FromSchema([]byte(f.Text))
	case api.GBNF:
		return grammar.FromGBNF(f.Text, vocab())
	}
	return grammar.AnyObject(), nil
}
