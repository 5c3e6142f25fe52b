package answer

import (
	"bytes"
	"context"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
	"sandwich/runtime/tokenizer"
)

// Vocab returns the vocabulary of a tokenizer for grammars. Control tokens have a mark in front,
// which no other token has.
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

// constrained reports whether an answer has to follow a format, or calls of tools.
func constrained(r *api.Request) bool { return r.Format.Kind != api.FreeText || mayCall(r) }

// constraint returns a Matcher for the answer of a request that is constrained, and adds warnings
// about what was left out of its schemas. The caller puts the Matcher back when the answer is over.
func (g *Generator) constraint(ctx context.Context, r *api.Request, thinking bool) (*held, error) {
	h, err := g.forms.take(ctx, keyOf(r, thinking), formSpec{class: r.Class, vocab: g.vocab,
		compile: func(m *grammar.Meter) (*grammar.Grammar, []string, error) { return g.compile(m, r, thinking) }})
	if err != nil {
		return nil, refusal(r, err)
	}
	for _, note := range h.of.notes {
		r.Warnings.Add("%s", note)
	}
	return h, nil
}

// compile makes the grammar of an answer, with warnings about what was left out.
func (g *Generator) compile(m *grammar.Meter, r *api.Request, thinking bool) (
	compiled *grammar.Grammar, warnings []string, err error) {
	switch {
	case mayCall(r):
		return g.callGrammar(m, r, thinking)
	case r.Format.Kind == api.JSONSchema:
		compiled, err = m.FromSchema([]byte(r.Format.Text))
	case r.Format.Kind == api.GBNF:
		compiled, err = m.FromGBNF(r.Format.Text, g.vocab())
	default:
		compiled, err = m.FromSchema([]byte(anyObject))
	}
	return compiled, nil, err
}

// anyObject is the schema of the format json_object.
const anyObject = `{"type":"object"}`

// refusal names the field of a request whose grammar cannot be compiled. Errors of contexts stay as
// they are.
func refusal(r *api.Request, err error) error {
	var bad *grammar.Error
	if !errors.As(err, &bad) || bad.Unwrap() != nil {
		return err
	}
	param := r.Format.Param
	if r.Format.Kind == api.FreeText {
		param = "tools"
	}
	return &api.InvalidError{Param: param, Message: "cannot be used: " + api.Printable(err.Error(), "")}
}
