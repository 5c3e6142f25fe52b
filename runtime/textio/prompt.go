package textio

import (
	"context"
	"errors"
	"slices"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// largeText is the length in bytes from which texts are encoded one at a time. Encoding a long word
// allocates up to twenty times its length, and takes CPU time from forwards.
const largeText = 256 << 10

// Prompt returns the tokens of a request, from its ids, its text or its messages. For messages it
// also sets Request.Marks if FindMarks is set. It returns the error of ctx if that ends,
// *api.InvalidError, whose message may quote the chat template, or *api.TooLongError.
func (e *Adapter) Prompt(ctx context.Context, r *api.Request) ([]int32, error) {
	if r.Prompt != nil {
		for _, id := range r.Prompt {
			if id < 0 || int(id) >= e.tok.Vocab() {
				return nil, &api.InvalidError{Param: "prompt", Message: "holds a token id outside the vocabulary"}
			}
		}
		return r.Prompt, nil
	}
	// Token counts in errors are exact up to twice the context.
	limit := 2 * e.engine.Context()
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
	ids, err := e.encode(ctx, r, prompt.Text, func() ([]int32, error) { return e.tok.EncodeChat(ctx, prompt, limit) })
	if err == nil && e.FindMarks {
		r.Marks, err = e.marks(ctx, r, prompt, ids)
	}
	return ids, err
}

// maxMarks bounds the marks of a request that are used, the last ones. Anthropic's API allows four.
const maxMarks = 4

// marks returns the positions in the tokens of a chat at which the request has marks.
func (e *Adapter) marks(ctx context.Context, r *api.Request, p tokenizer.Prompt, ids []int32) (list []int, err error) {
	var at []int
	if r.ToolsMarked {
		at = append(at, p.AfterTools(len(r.Messages)))
	}
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Mark > 0 {
			at = append(at, p.After(i, m.Content, m.Mark))
		}
	}
	slices.Sort(at)
	for _, at := range at[max(0, len(at)-maxMarks):] {
		before, err := e.tok.EncodeChat(ctx, p.Until(at), len(ids))
		if err != nil {
			return nil, err
		}
		n := 0
		for n < min(len(before), len(ids)) && before[n] == ids[n] {
			n++
		}
		if n > 0 {
			list = append(list, n)
		}
	}
	return list, nil
}

// Render returns the messages and tools of a chat as the text that the model continues. It returns
// *api.InvalidError, or the cause of ctx if that ends.
func (e *Adapter) Render(ctx context.Context, r *api.Request) (string, error) {
	prompt, err := e.chat(ctx, r)
	return prompt.Text, err
}

// chat renders a chat by the template of the model.
func (e *Adapter) chat(ctx context.Context, r *api.Request) (tokenizer.Prompt, error) {
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
		// The template failed; other messages may avoid its error.
		return prompt, &api.InvalidError{Message: err.Error()}
	case r.Continue:
		prompt = prompt.Continued()
	}
	return prompt, nil
}

// encode calls encodeText for the text of a request. It returns *api.TooLongError if the tokens do
// not fit the context, without encoding the text if its length in bytes shows that.
func (e *Adapter) encode(ctx context.Context, r *api.Request, text string,
	encodeText func() ([]int32, error)) ([]int32, error) {
	tooLong := &api.TooLongError{MaxTokens: r.MaxTokens, Context: e.engine.Context(), AtLeast: true}
	if widest := e.tok.WidestToken(); widest > 0 {
		tooLong.PromptTokens = (len(text) + widest - 1) / widest
	}
	if tooLong.PromptTokens >= tooLong.Context {
		return nil, tooLong
	}
	ids, err := e.limitLarge(ctx, text, encodeText)
	if err == nil && len(ids) > 2*tooLong.Context {
		tooLong.PromptTokens = len(ids)
		return nil, tooLong
	}
	return ids, err
}

// Encode returns the tokens of a text of any length, or the error of ctx if that ends first. Prompt
// encodes the texts of requests.
func (e *Adapter) Encode(ctx context.Context, text string, o tokenizer.EncodeOptions) ([]int32, error) {
	return e.limitLarge(ctx, text, func() ([]int32, error) { return e.tok.EncodeContext(ctx, nil, text, o) })
}

// limitLarge calls encodeText; if the text is large, it first waits until no other large text is
// being encoded.
func (e *Adapter) limitLarge(
	ctx context.Context, text string, encodeText func() ([]int32, error),
) ([]int32, error) {
	if len(text) >= largeText {
		select {
		case e.large <- struct{}{}:
			defer func() { <-e.large }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return encodeText()
}
