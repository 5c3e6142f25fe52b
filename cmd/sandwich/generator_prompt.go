package main

import (
	"context"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// largeText is the length in bytes from which texts are encoded one at a time: long words take up
// to twenty times their length meanwhile, and PUs on which others' tokens are computed.
const largeText = 256 << 10

// prompt turns the request into tokens, unless ctx ends.
func (g *generator) prompt(ctx context.Context, r *api.Request) ([]int32, error) {
	if r.Prompt != nil {
		for _, id := range r.Prompt {
			if id < 0 || int(id) >= g.tok.Vocab() {
				return nil, &api.InvalidError{Param: "prompt", Message: "holds a token id outside the vocabulary"}
			}
		}
		return r.Prompt, nil
	}
	// Counts are exact up to twice the context; beyond that a client has to shorten the prompt by
	// more than half anyhow.
	limit := 2 * g.engine.Context()
	if !r.Chat() {
		return g.encode(ctx, r, r.Text, func() ([]int32, error) {
			o := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true, Limit: limit}
			return g.tok.EncodeContext(ctx, nil, r.Text, o)
		})
	}
	text, err := g.tok.Chat(ctx, r.Messages, true)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, tokenizer.ErrMessages):
		return nil, &api.InvalidError{Param: "messages", Message: "cannot be used: " + printable(err.Error())}
	case err != nil:
		// the template's fault, which other messages may avoid
		return nil, &api.InvalidError{Message: printable(err.Error())}
	}
	return g.encode(ctx, r, text, func() ([]int32, error) { return g.tok.EncodeChat(ctx, text, limit) })
}

// encode calls how for a text that may fit the context. One that cannot, by its length, is refused
// unread.
func (g *generator) encode(ctx context.Context, r *api.Request, text string,
	how func() ([]int32, error)) ([]int32, error) {
	tooLong := &api.TooLongError{MaxTokens: r.MaxTokens, Context: g.engine.Context(), AtLeast: true}
	if widest := g.tok.WidestToken(); widest > 0 {
		tooLong.PromptTokens = (len(text) + widest - 1) / widest
	}
	if tooLong.PromptTokens >= tooLong.Context {
		return nil, tooLong
	}
	if len(text) >= largeText {
		select {
		case g.large <- struct{}{}:
			defer func() { <-g.large }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ids, err := how()
	if err == nil && len(ids) > 2*tooLong.Context {
		tooLong.PromptTokens = len(ids)
		return nil, tooLong
	}
	return ids, err
}
