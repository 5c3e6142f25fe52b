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

// ErrMessages is wrapped by errors that say that the template refuses this conversation in all
// versions that were tried (raise_exception). The fault lies with the caller of the API, not with
// the model.
var ErrMessages = errors.New("the chat template refuses the messages")

// Limits of a conversation and of its rendered text.
const (
	maxMessages = 10_000
	maxChatText = 64 << 20 // bytes of all messages together

	messageBytes = 256 // allowance for a message, in addition to its text
)

// Conversation is what a chat template renders.
type Conversation struct {
	Messages []api.Message
	Tools    []api.Tool // shown to the model as the template does, or by a system text of our own
	// Variables are further ones that the template may read: a JSON object, or empty. Those that
	// every template is given come before them.
	Variables string
	Reply     bool          // the text ends where the assistant's reply starts
	Warnings  *api.Warnings // collects what had to be moved or left out; may be nil
}

// Chat renders a conversation as the text the model was trained on, by tokenizer.chat_template, or
// by the format that ChatFormat names if the model has none. The text may start with BOS spelled
// out; EncodeChat takes care of that. Where the template refuses the messages or does not show a
// system, user or tool text, messages are merged and rendered again (package chat). A rendering
// ends soon after ctx does, with its cause.
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

// attempt is a version of a conversation as the template rendered it.
type attempt struct {
	version *chat.Version
	out     jinja.Output
	missing []jinja.Origin
}

// tryVersions returns the first rendered version that misses no text, else the one that misses the
// fewest. Without any it returns the error of the first version. It tries further versions for as
// long as one rendering may take.
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

// ToolFormat returns how the model writes calls of tools.
func (t *Tokenizer) ToolFormat() *toolcall.Format { return t.calls() }

// Spans parts a text into control tokens of the vocabulary and what stands between them.
func (t *Tokenizer) Spans(text string) (out []toolcall.Span) {
	for text != "" {
		at, n, id := t.special.find(text, len(text))
		for n > 0 && !t.IsControl(id) { // a token of ordinary text
			rest := text[at+n:]
			next, m, id2 := t.special.find(rest, len(rest))
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

// ChatFormat names how Chat renders: "template" for the model's own, else "chatml", "llama-3",
// "llama-2" or "plain".
func (t *Tokenizer) ChatFormat() string {
	format, err := t.chat()
	if err != nil {
		return "template"
	}
	return format.name
}

func checkMessages(msgs []api.Message) error {
	if len(msgs) == 0 {
		return fmt.Errorf("%w: there are none", ErrMessages)
	}
	if len(msgs) > maxMessages {
		return fmt.Errorf("%w: %d of them, more than %d", ErrMessages, len(msgs), maxMessages)
	}
	total := 0
	for _, m := range msgs {
		total += len(m.Role) + len(m.Content) + len(m.Reasoning)
		for _, c := range m.Calls {
			total += len(c.Name) + len(c.Arguments)
		}
	}
	if total > maxChatText {
		return fmt.Errorf("%w: %d bytes of text, more than %d", ErrMessages, total, maxChatText)
	}
	return nil
}

// chatFormat renders conversations one way.
type chatFormat struct {
	name   string
	render renderFunc
}

// renderFunc renders a version of a history.
type renderFunc func(ctx context.Context, t *Tokenizer, h *chat.History, v *chat.Version, c Conversation) (
	jinja.Output, error)

// readChat decides on the format. A template is compiled when it is first used: most programs that
// load a tokenizer never chat.
func (t *Tokenizer) readChat(meta Metadata) {
	source, ok := meta.String(keyTemplate)
	source = strings.Clone(source) // the file may be unmapped by then
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
