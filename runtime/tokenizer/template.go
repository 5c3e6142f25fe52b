package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/jinja"
)

// Limits of one rendering. What a template writes beside the messages is a few kilobytes in
// practice.
const (
	renderTime  = 2 * time.Second
	renderSteps = 5_000_000 // beside 64 for each byte of the messages
	renderSpare = 256 << 10 // bytes of text beside four times the messages
	renderMade  = 16 << 20  // bytes of all values made, beside 64 times the messages
	renderMost  = 512 << 20
	renderDepth = 64 // macros inside macros, lists inside lists
)

// renderLimits are those of a conversation of so many bytes.
func renderLimits(input int) jinja.Limits {
	return jinja.Limits{
		Time: renderTime, Steps: renderSteps + 64*input, Depth: renderDepth,
		Text: renderSpare + 4*input, Bytes: min(renderMade+64*input, renderMost),
	}
}

// chatTemplate is a model's own template, safe for concurrent use.
type chatTemplate struct{ *jinja.Template }

// render runs the template over a conversation.
func (c chatTemplate) render(
	ctx context.Context, t *Tokenizer, msgs []api.Message, addGenerationPrompt bool,
) (string, error) {
	input := 0
	turns := make([]any, len(msgs))
	for i, m := range msgs {
		turns[i] = new(jinja.Dict).Set("role", m.Role).Set("content", m.Content)
		input += messageBytes + len(m.Role) + len(m.Content)
	}
	vars := new(jinja.Dict).
		Set("messages", jinja.NewList(turns...)).
		Set("add_generation_prompt", addGenerationPrompt).
		Set("bos_token", string(t.Piece(t.bos))).
		Set("eos_token", string(t.Piece(t.eos))).
		Set("unk_token", string(t.Piece(t.unknown)))
	text, err := c.Render(ctx, vars, time.Now(), renderLimits(input))
	var raised *jinja.RaisedError
	var limit *jinja.LimitError
	switch {
	case err == nil:
		return text, nil
	case errors.As(err, &raised):
		return "", fmt.Errorf("%w: %s", ErrMessages, raised.Message)
	case errors.As(err, &limit):
		return "", fmt.Errorf("the model's chat template was stopped: %w", err)
	case ctx.Err() != nil:
		return "", err
	}
	return "", fmt.Errorf("the model's chat template failed: %w", err)
}
