package answer

import (
	"context"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// Prompt returns the token ids of a request's prompt.
func (g *Generator) Prompt(ctx context.Context, r *api.Request) ([]int32, error) {
	ids, err := g.text.Prompt(ctx, r)
	return ids, printable(err)
}

// Render returns the text of a chat, as its template renders it.
func (g *Generator) Render(ctx context.Context, r *api.Request) (string, error) {
	text, err := g.text.Render(ctx, r)
	return text, printable(err)
}

// printable makes an error printable that may quote the template of the model file.
func printable(err error) error {
	var invalid *api.InvalidError
	if errors.As(err, &invalid) {
		invalid.Message = api.Printable(invalid.Message, "")
	}
	return err
}

// Encode returns the tokens of text. special adds the tokens that surround texts, parse recognizes
// control tokens in text. The length is not limited.
func (g *Generator) Encode(ctx context.Context, text string, special, parse bool) ([]int32, error) {
	return g.text.Encode(ctx, text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: parse})
}

// Decode returns the text of tokens, control tokens included, or an *api.InvalidError for an id
// outside the vocabulary.
func (g *Generator) Decode(_ context.Context, ids []int32) (string, error) {
	for _, id := range ids {
		if int(id) >= g.tok.Vocab() {
			return "", &api.InvalidError{Param: "tokens", Message: "holds a token id outside the vocabulary"}
		}
	}
	return g.tok.Decode(ids, true), nil
}

// Piece returns the bytes of a token.
func (g *Generator) Piece(id int32) string { return string(g.tok.Piece(id)) }
