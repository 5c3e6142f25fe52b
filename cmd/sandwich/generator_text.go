package main

import (
	"context"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// Prompt is the tokens of a request.
func (g *generator) Prompt(ctx context.Context, r *api.Request) ([]int32, error) {
	ids, err := g.engine.Prompt(ctx, r)
	return ids, ofTemplate(err)
}

// Render is the text of a chat.
func (g *generator) Render(ctx context.Context, r *api.Request) (string, error) {
	text, err := g.engine.Render(ctx, r)
	return text, ofTemplate(err)
}

// ofTemplate makes an error printable that may quote the template, which is the model file's.
func ofTemplate(err error) error {
	var invalid *api.InvalidError
	if errors.As(err, &invalid) {
		invalid.Message = printable(invalid.Message)
	}
	return err
}

// Encode turns text into tokens, of any number.
func (g *generator) Encode(ctx context.Context, text string, special, parse bool) ([]int32, error) {
	return g.engine.Encode(ctx, text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: parse})
}

// Decode turns tokens into text.
func (g *generator) Decode(ids []int32) (string, error) {
	for _, id := range ids {
		if int(id) >= g.session.tok.Vocab() {
			return "", &api.InvalidError{Param: "tokens", Message: "holds a token id outside the vocabulary"}
		}
	}
	return g.session.tok.Decode(ids, true), nil
}

// Piece is the bytes of a token.
func (g *generator) Piece(id int32) string { return string(g.session.tok.Piece(id)) }
