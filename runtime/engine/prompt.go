package engine

import (
	"context"
	"errors"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// largeText is the length in bytes from which texts are encoded one at a time: long words take up
// to twenty times their length meanwhile, and PUs on which others' tokens are computed.
const largeText = 256 << 10

// Prompt turns the text or the messages of a request into tokens, unless ctx ends. It needs
// Options.Tokenizer. Errors are api.InvalidError, whose message may quote a template, and
// api.TooLongError.
func (e *Engine) Prompt(ctx context.Context, r *api.Request) ([]int32, error) {
	if r.Prompt != nil {
		for _, id := range r.Prompt {
			if id < 0 || int(id) >= e.tok.Vocab() {
				return nil, &api.InvalidError{Param: "prompt", Message: "holds a token id outside the vocabulary"}
			}
		}
		return r.Prompt, nil
	}
	// Counts are exact up to twice the context; beyond that a client has to shorten the prompt by
	// more than half anyhow.
	limit := 2 * e.context
	if !r.Chat() {
		return e.encode(ctx, r, r.Text, func() ([]int32, error) {
			o := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true, Limit: limit}
			return e.tok.EncodeContext(ctx, nil, r.Text, o)
		})
	}
	prompt, err := e.chat(ctx, r)
	if err != nil {
		return nil, err
	}
	return e.encode(ctx, r, prompt.Text, func() ([]int32, error) { return e.tok.EncodeChat(ctx, prompt, limit) })
}

// Render writes the messages and tools of a chat as the text that the model continues. Errors are
// api.InvalidError, and the cause of ctx where that ends.
func (e *Engine) Render(ctx context.Context, r *api.Request) (string, error) {
	prompt, err := e.chat(ctx, r)
	return prompt.Text, err
}

// chat renders a chat.
func (e *Engine) chat(ctx context.Context, r *api.Request) (tokenizer.Prompt, error) {
	var tools []api.Tool
	if r.ToolChoice.Mode != api.ToolsNone {
		tools = r.Tools
	}
	prompt, err := e.tok.Chat(ctx, tokenizer.Conversation{Messages: r.Messages, Tools: tools, Variables: r.Variables,
		Reply: !r.Continue, Warnings: r.Warnings})
	switch {
	case ctx.Err() != nil:
		return prompt, context.Cause(ctx)
	case errors.Is(err, tokenizer.ErrMessages):
		return prompt, &api.InvalidError{Param: "messages", Message: "cannot be used: " + err.Error()}
	case err != nil:
		// the template's fault, which other messages may avoid
		return prompt, &api.InvalidError{Message: err.Error()}
	case r.Continue:
		prompt = prompt.Continued()
	}
	return prompt, nil
}

// encode calls how for a text that may fit the context. One that cannot, by its length, is refused
// unread.
func (e *Engine) encode(ctx context.Context, r *api.Request, text string,
	how func() ([]int32, error)) ([]int32, error) {
	tooLong := &api.TooLongError{MaxTokens: r.MaxTokens, Context: e.context, AtLeast: true}
	if widest := e.tok.WidestToken(); widest > 0 {
		tooLong.PromptTokens = (len(text) + widest - 1) / widest
	}
	if tooLong.PromptTokens >= tooLong.Context {
		return nil, tooLong
	}
	ids, err := e.inTurn(ctx, text, how)
	if err == nil && len(ids) > 2*tooLong.Context {
		tooLong.PromptTokens = len(ids)
		return nil, tooLong
	}
	return ids, err
}

// Encode turns text of any length into tokens, unless ctx ends; requests use Prompt. It needs
// Options.Tokenizer.
func (e *Engine) Encode(ctx context.Context, text string, o tokenizer.EncodeOptions) ([]int32, error) {
	return e.inTurn(ctx, text, func() ([]int32, error) { return e.tok.EncodeContext(ctx, nil, text, o) })
}

// inTurn calls how for a text, when no other large one is encoded where it is large.
func (e *Engine) inTurn(ctx context.Context, text string, how func() ([]int32, error)) ([]int32, error) {
	if len(text) >= largeText {
		select {
		case e.large <- struct{}{}:
			defer func() { <-e.large }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return how()
}
