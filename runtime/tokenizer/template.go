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
	"sandwich/runtime/chat"
	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
)

// Limits of one rendering. A template typically writes a few kilobytes in addition to the messages.
const (
	renderTime  = 2 * time.Second
	renderSteps = 5_000_000 // plus 64 for each byte of the messages
	renderSpare = 256 << 10 // bytes of text, plus four times the messages
	renderMade  = 16 << 20  // bytes of all values created, plus 64 times the messages
	maxRender   = 512 << 20 // upper bound of renderMade plus its share of the messages
	renderDepth = 64        // nesting of macro calls and of lists
)

// renderLimits returns the limits for a conversation of the given size in bytes.
func renderLimits(input int) jinja.Limits {
	return jinja.Limits{
		Time: renderTime, Steps: renderSteps + 64*input, Depth: renderDepth,
		Text: renderSpare + 4*input, Bytes: min(renderMade+64*input, maxRender),
	}
}

// now is the clock of strftime_now; tests replace it.
var now = time.Now

// chatTemplate is the template of a model. It is safe for concurrent use.
type chatTemplate struct{ *jinja.Template }

// render runs the template on a version of a conversation. Some templates expect the arguments of a
// call as an object, others as JSON text: if rendering with objects fails, render tries text.
func (c chatTemplate) render(ctx context.Context, t *Tokenizer, h *chat.History, v *chat.Version,
	talk Conversation) (jinja.Output, error) {
	out, err := c.renderCalls(ctx, t, h, v, talk, readArguments)
	var limit *jinja.LimitError
	if err == nil || ctx.Err() != nil || errors.As(err, &limit) || !hasCalls(v.Messages) {
		return out, err
	}
	asText := func(arguments string) (any, error) { return arguments, nil }
	if again, failed := c.renderCalls(ctx, t, h, v, talk, asText); failed == nil {
		return again, nil
	}
	return out, err
}

func hasCalls(msgs []chat.Message) bool {
	return slices.ContainsFunc(msgs, func(m chat.Message) bool { return len(m.Calls) > 0 })
}

func readArguments(arguments string) (any, error) { return jinja.FromJSON([]byte(arguments)) }

func (c chatTemplate) renderCalls(ctx context.Context, t *Tokenizer, h *chat.History, v *chat.Version,
	talk Conversation, arguments func(string) (any, error)) (out jinja.Output, err error) {
	input := len(talk.Variables)
	messages := make([]any, len(v.Messages))
	for i := range v.Messages {
		if messages[i], err = messageValue(&v.Messages[i], arguments, talk.typed); err != nil {
			return out, fmt.Errorf("%w: the arguments of a call in message %d are not valid JSON: %v", ErrMessages, i,
				err)
		}
		input += messageBytes + sizeOf(&v.Messages[i])
	}
	vars, err := variables(talk.Variables, h.OtherOrigin())
	if err != nil {
		return out, err
	}
	vars.Set("messages", jinja.NewList(messages...)).
		Set("add_generation_prompt", talk.Reply).
		Set("bos_token", string(t.Piece(t.bos))).
		Set("eos_token", string(t.Piece(t.eos))).
		Set("unk_token", string(t.Piece(t.unknown)))
	for _, name := range []string{"tools", "documents"} { // transformers defines both
		if !vars.Has(name) {
			vars.Set(name, nil)
		}
	}
	if len(v.Tools) > 0 {
		list, size, err := toolList(v.Tools)
		if err != nil {
			return out, err
		}
		vars.Set("tools", jinja.Mark(list, h.ToolsOrigin()))
		input += size
	}
	out, err = c.Render(ctx, vars, now(), renderLimits(input))
	return out, renderError(ctx, err)
}

// variables parses the additional variables of a conversation.
func variables(text string, o jinja.Origin) (*jinja.Dict, error) {
	if text == "" {
		return new(jinja.Dict), nil
	}
	v, err := jinja.FromJSON([]byte(text))
	if vars, ok := v.(*jinja.Dict); ok && err == nil {
		jinja.Mark(vars, o)
		return vars, nil
	}
	return nil, fmt.Errorf("%w: the template variables are not a JSON object", ErrMessages)
}

func sizeOf(m *chat.Message) int {
	size := m.Size()
	for _, c := range m.Calls {
		size += messageBytes + len(c.ID) + len(c.Name) + len(c.Arguments)
	}
	return size
}

// messageValue returns the value of a message in the form that templates read. Reasoning has
// several names. Templates that read thinking refuse it next to both a text and calls.
func messageValue(m *chat.Message, arguments func(string) (any, error), typed bool) (*jinja.Dict, error) {
	content := m.Content()
	value := new(jinja.Dict).Set("role", m.Role).Set("content", content.Value())
	if typed {
		value.Set("content", jinja.NewList(new(jinja.Dict).Set("type", "text").Set("text", content.Value())))
	}
	if m.Reasoning != "" {
		value.Set("reasoning_content", m.Reasoning).Set("reasoning", m.Reasoning)
		if content.Plain == "" || len(m.Calls) == 0 {
			value.Set("thinking", m.Reasoning)
		}
	}
	if m.CallID.Plain != "" {
		value.Set("tool_call_id", callID(m.CallID).Value())
	}
	if m.Name.Plain != "" {
		value.Set("name", m.Name.Value())
	}
	if len(m.Calls) == 0 {
		return value, nil
	}
	calls := make([]any, len(m.Calls))
	for i, c := range m.Calls {
		args, err := arguments(c.Arguments)
		if err != nil {
			return nil, err
		}
		function := new(jinja.Dict).Set("name", c.Name).Set("arguments", args)
		id := callID(jinja.Text{Plain: c.ID}).Value()
		calls[i] = new(jinja.Dict).Set("id", id).Set("type", "function").Set("function", function)
	}
	return value.Set("tool_calls", jinja.NewList(calls...)), nil
}

// callIDLength is the length of a call id that Mistral's templates require. Other templates accept
// any length.
const callIDLength = 9

// callID returns an id that every template accepts. It hashes ids of another length.
func callID(id jinja.Text) jinja.Text {
	if len(id.Plain) == callIDLength {
		return id
	}
	sum := sha256.Sum256([]byte(id.Plain))
	return jinja.Text{Plain: hex.EncodeToString(sum[:])[:callIDLength]}
}

// toolList returns the tools in the form that templates read, and their size in bytes.
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

// renderError adds to an error of a template whether the conversation, a limit or the template
// caused it.
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
