package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/chat"
	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
)

// ErrMessages is wrapped by errors that report that the template refuses the conversation in every
// version that was tried (raise_exception). The caller of the API is at fault, not the model.
var ErrMessages = errors.New("the chat template refuses the messages")

// Limits of a conversation and of its rendered text.
const (
	maxMessages = 10_000
	maxChatText = 64 << 20 // bytes of all messages together

	messageBytes = 256 // allowance for a message, in addition to its text
)

// Conversation is the input of a chat template.
type Conversation struct {
	Messages []api.Message
	Tools    []api.Tool // shown to the model by the template, or in a system text written by package chat
	// Variables is a JSON object with additional variables for the template, or empty. Standard
	// variables override variables of the same name.
	Variables string
	Reply     bool          // end the text where the assistant's reply starts
	Warnings  *api.Warnings // collects what was moved or left out; may be nil
}

// Chat renders a conversation with tokenizer.chat_template, or with the format that ChatFormat
// names if the model has no template. The text may start with the spelling of BOS; EncodeChat does
// not add a second one. If the template refuses the messages or does not show a system, user or
// tool text, Chat merges messages and renders them again (package chat). It returns the cause of
// ctx soon after ctx ends.
func (t *Tokenizer) Chat(ctx context.Context, c Conversation) (Prompt, error) {
	if err := checkMessages(c.Messages); err != nil {
		return Prompt{}, err
	}
	format, err := t.chat()
	if err != nil {
		return Prompt{}, err
	}
	h := chat.New(t.calls(), c.Messages, c.Tools)
	a, err := tryVersions(ctx, h, func(v *chat.Version) (jinja.Output, error) { return format.render(ctx, t, h, v, c) })
	if err != nil {
		return Prompt{}, err
	}
	h.Report(a.version, a.missing, c.Warnings)
	return newPrompt(h, a.out), nil
}

// attempt is a version of a conversation, the template's output for it and the texts that the
// output lacks.
type attempt struct {
	version *chat.Version
	out     jinja.Output
	missing []jinja.Origin
}

// tryVersions returns the first rendered version that shows every text, or else the version that
// lacks the fewest texts. If no version renders, it returns the error of the first one. It tries
// further versions until the time limit of one rendering has passed.
func tryVersions(ctx context.Context, h *chat.History,
	render func(*chat.Version) (jinja.Output, error)) (best attempt, err error) {
	limited, cancel := context.WithTimeout(ctx, renderTime)
	defer cancel()
	for v := range h.Versions(limited) {
		out, failed := render(v)
		if failed != nil {
			if err == nil {
				err = failed
			}
			if limit := new(jinja.LimitError); ctx.Err() != nil || errors.As(failed, &limit) {
				break
			}
			continue
		}
		missing := h.Missing(out)
		if best.version == nil || len(missing) < len(best.missing) {
			best = attempt{v, out, missing}
		}
		if len(missing) == 0 {
			break
		}
	}
	if best.version != nil {
		return best, nil
	}
	return best, err
}

// ToolFormat returns the format in which the model writes tool calls.
func (t *Tokenizer) ToolFormat() *toolcall.Format { return t.calls() }

// Spans splits a text into control tokens of the vocabulary and the text between them.
func (t *Tokenizer) Spans(text string) (out []toolcall.Span) {
	for text != "" {
		at, n, id := t.special.Find(text, len(text))
		for n > 0 && !t.IsControl(id) { // skip tokens of ordinary text
			rest := text[at+n:]
			next, m, id2 := t.special.Find(rest, len(rest))
			at, n, id = at+n+next, m, id2
		}
		if at > 0 {
			out = append(out, toolcall.Span{Text: text[:at]})
		}
		if n > 0 {
			out = append(out, toolcall.Span{Text: text[at : at+n], Control: true})
		}
		text = text[at+n:]
	}
	return out
}

// ChatIDs renders messages and encodes them, as Chat and EncodeChat do.
func (t *Tokenizer) ChatIDs(ctx context.Context, msgs []api.Message, addGenerationPrompt bool) ([]int32, error) {
	prompt, err := t.Chat(ctx, Conversation{Messages: msgs, Reply: addGenerationPrompt})
	if err != nil {
		return nil, err
	}
	return t.EncodeChat(context.Background(), prompt, 0)
}

// ChatFormat returns the name of the format that Chat renders: "template" for the model's own
// template, else "chatml", "llama-3", "llama-2" or "plain".
func (t *Tokenizer) ChatFormat() string {
	format, err := t.chat()
	if err != nil {
		return "template"
	}
	return format.name
}

func checkMessages(msgs []api.Message) error {
	if len(msgs) == 0 {
		return fmt.Errorf("%w: the conversation is empty; send at least one message", ErrMessages)
	}
	if len(msgs) > maxMessages {
		return fmt.Errorf("%w: %d messages are more than the limit of %d", ErrMessages, len(msgs), maxMessages)
	}
	total := 0
	for _, m := range msgs {
		total += len(m.Role) + len(m.Content) + len(m.Reasoning)
		for _, c := range m.Calls {
			total += len(c.Name) + len(c.Arguments)
		}
	}
	if total > maxChatText {
		return fmt.Errorf("%w: the messages have %d bytes of text, more than the limit of %d", ErrMessages, total,
			maxChatText)
	}
	return nil
}

// chatFormat is a named way to render conversations.
type chatFormat struct {
	name   string
	render renderFunc
}

// renderFunc renders one version of a conversation.
type renderFunc func(ctx context.Context, t *Tokenizer, h *chat.History, v *chat.Version, c Conversation) (
	jinja.Output, error)

// readChat selects the chat format. A template is parsed when it is first used, because most
// programs that load a tokenizer never render a conversation.
func (t *Tokenizer) readChat(meta Metadata) {
	source, ok := meta.String(keyTemplate)
	source = strings.Clone(source) // the file may be unmapped before the template is parsed
	t.calls = sync.OnceValue(func() *toolcall.Format { return toolcall.Of(source) })
	spelled := source
	if ok && source != "" {
		t.chat = sync.OnceValues(func() (*chatFormat, error) {
			template, err := jinja.Parse(source)
			if err != nil {
				return nil, fmt.Errorf("the model's chat template cannot be used: %w", err)
			}
			return &chatFormat{"template", chatTemplate{template}.render}, nil
		})
	} else {
		format := t.fallbackFormat()
		t.chat = func() (*chatFormat, error) { return format, nil }
		spelled = fallbackMarks
	}
	t.guards = sync.OnceValue(func() *guards { return t.newGuards(spelled + t.pair) })
}
