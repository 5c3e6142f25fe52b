package tokenizer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
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

// now is the clock of strftime_now; tests replace it.
var now = time.Now

// chatTemplate is a model's own template, safe for concurrent use.
type chatTemplate struct{ *jinja.Template }

// render runs the template over a conversation. Templates differ in whether the arguments of calls
// are an object or its text: where the first fails, the other one is tried.
func (c chatTemplate) render(ctx context.Context, t *Tokenizer, talk Conversation) (string, error) {
	text, err := c.renderCalls(ctx, t, talk, readArguments)
	var limit *jinja.LimitError
	if err == nil || ctx.Err() != nil || errors.As(err, &limit) || !hasCalls(talk.Messages) {
		return text, err
	}
	asText := func(arguments string) (any, error) { return arguments, nil }
	if again, failed := c.renderCalls(ctx, t, talk, asText); failed == nil {
		return again, nil
	}
	return text, err
}

func hasCalls(msgs []api.Message) bool {
	return slices.ContainsFunc(msgs, func(m api.Message) bool { return len(m.Calls) > 0 })
}

func readArguments(arguments string) (any, error) { return jinja.FromJSON([]byte(arguments)) }

func (c chatTemplate) renderCalls(ctx context.Context, t *Tokenizer, talk Conversation,
	arguments func(string) (any, error)) (string, error) {
	input, msgs, tools := len(talk.Variables), talk.Messages, talk.Tools
	turns := make([]any, len(msgs))
	for i := range msgs {
		turn, err := turnOf(&msgs[i], arguments)
		if err != nil {
			return "", fmt.Errorf("%w: the arguments of a call in message %d are not valid JSON: %v", ErrMessages, i,
				err)
		}
		turns[i] = turn
		input += messageBytes + sizeOf(&msgs[i])
	}
	vars, err := variables(talk.Variables)
	if err != nil {
		return "", err
	}
	vars.Set("messages", jinja.NewList(turns...)).
		Set("add_generation_prompt", talk.Reply).
		Set("bos_token", string(t.Piece(t.bos))).
		Set("eos_token", string(t.Piece(t.eos))).
		Set("unk_token", string(t.Piece(t.unknown)))
	if len(tools) > 0 {
		list, size, err := toolList(tools)
		if err != nil {
			return "", err
		}
		vars.Set("tools", list)
		input += size
	}
	out, err := c.Render(ctx, vars, now(), renderLimits(input))
	return out.Plain, renderError(ctx, err)
}

// variables reads those that a conversation comes with.
func variables(text string) (*jinja.Dict, error) {
	if text == "" {
		return new(jinja.Dict), nil
	}
	v, err := jinja.FromJSON([]byte(text))
	if vars, ok := v.(*jinja.Dict); ok && err == nil {
		return vars, nil
	}
	return nil, fmt.Errorf("%w: the variables for it are no JSON object", ErrMessages)
}

func sizeOf(m *api.Message) int {
	size := len(m.Role) + len(m.Content) + len(m.Reasoning)
	for _, c := range m.Calls {
		size += messageBytes + len(c.ID) + len(c.Name) + len(c.Arguments)
	}
	return size
}

// turnOf is a message as templates see it.
func turnOf(m *api.Message, arguments func(string) (any, error)) (*jinja.Dict, error) {
	turn := new(jinja.Dict).Set("role", m.Role).Set("content", m.Content)
	if m.Reasoning != "" {
		turn.Set("reasoning_content", m.Reasoning)
	}
	if m.CallID != "" {
		turn.Set("tool_call_id", callID(m.CallID))
	}
	if m.Name != "" {
		turn.Set("name", m.Name)
	}
	if len(m.Calls) == 0 {
		return turn, nil
	}
	calls := make([]any, len(m.Calls))
	for i, c := range m.Calls {
		args, err := arguments(c.Arguments)
		if err != nil {
			return nil, err
		}
		function := new(jinja.Dict).Set("name", c.Name).Set("arguments", args)
		calls[i] = new(jinja.Dict).Set("id", callID(c.ID)).Set("type", "function").Set("function", function)
	}
	return turn.Set("tool_calls", jinja.NewList(calls...)), nil
}

// callIDLength is what the templates of Mistral demand; others take any.
const callIDLength = 9

// callID is an id of a call as every template takes it: ids of clients are hashed.
func callID(id string) string {
	if len(id) == callIDLength {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:callIDLength]
}

// toolList is the tools as templates see them, and the bytes that they take.
func toolList(tools []api.Tool) (*jinja.List, int, error) {
	items := make([]any, len(tools))
	size := 0
	for i := range tools {
		text := toolcall.Declaration(&tools[i])
		item, err := jinja.FromJSON([]byte(text))
		if err != nil {
			return nil, 0, fmt.Errorf("%w: tool %s cannot be read: %v", ErrMessages, tools[i].Name, err)
		}
		items[i] = item
		size += messageBytes + len(text)
	}
	return jinja.NewList(items...), size, nil
}

// renderError says whose fault an error of a template is.
func renderError(ctx context.Context, err error) error {
	var raised *jinja.RaisedError
	var limit *jinja.LimitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &raised):
		return fmt.Errorf("%w: %s", ErrMessages, raised.Message)
	case errors.As(err, &limit):
		return fmt.Errorf("the model's chat template was stopped: %w", err)
	case ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("the model's chat template failed: %w", err)
}
