package answer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
	"sandwich/runtime/tokenizer"
)

// Vocab returns the vocabulary of a tokenizer for grammars. Control tokens are prefixed with
// grammar.ControlMark; other tokens that contain the mark are left out.
func Vocab(tok *tokenizer.Tokenizer) *grammar.Vocab {
	text := make([][]byte, tok.Vocab())
	var ends []int32
	for id := range int32(len(text)) {
		switch {
		case tok.IsEOG(id):
			ends = append(ends, id)
			text[id] = append([]byte(grammar.ControlMark), tok.Piece(id)...) // named in error messages
		case tok.IsControl(id):
			text[id] = append([]byte(grammar.ControlMark), tok.Piece(id)...)
		case !bytes.Contains(tok.Piece(id), []byte(grammar.ControlMark)):
			text[id] = tok.Piece(id)
		}
	}
	return grammar.NewVocab(text, ends)
}

// constrained reports whether an answer must follow a format or may call tools.
func constrained(r *api.Request) bool { return r.Format.Kind != api.FreeText || mayCall(r) }

// constraint returns a Matcher for the answer of a constrained request and records warnings about
// unenforced parts of its schemas. The caller must return the Matcher when the answer is over.
func (g *Generator) constraint(ctx context.Context, r *api.Request, thinking bool) (*lease, error) {
	h, err := g.cache.take(ctx, keyOf(r, thinking), grammarSpec{class: r.Class, vocab: g.vocab,
		compile: func(m *grammar.Meter) (*grammar.Grammar, []string, error) { return g.compile(m, r, thinking) }})
	if err != nil {
		return nil, refusal(r, err)
	}
	for _, note := range h.of.notes {
		r.Warnings.Add("%s", note)
	}
	return h, nil
}

// compile returns the grammar of an answer and warnings about what it does not enforce.
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

// refusal names the request field whose grammar cannot be compiled. Errors of contexts are returned
// unchanged.
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

// keyOf returns the cache key of a request's grammar: a hash of everything that determines the
// grammar, and of the salt, so that clients cannot learn about each other's formats from compile
// times.
func keyOf(r *api.Request, thinking bool) (key grammarKey) {
	h := sha256.New()
	text := func(parts ...string) {
		for _, s := range parts {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
			h.Write([]byte(s))
		}
	}
	flag := func(v bool) byte {
		if v {
			return 1
		}
		return 0
	}
	h.Write(r.Salt[:])
	h.Write([]byte{byte(r.Format.Kind), flag(thinking), flag(mayCall(r)), flag(r.OneCall), byte(r.ToolChoice.Mode)})
	text(r.Format.Text)
	if mayCall(r) {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(r.ToolChoice.Names))))
		text(r.ToolChoice.Names...)
		for _, t := range r.Tools {
			text(t.Name, t.Parameters)
			h.Write([]byte{flag(t.Strict)})
		}
	}
	h.Sum(key[:0])
	return key
}
