package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
)

// ErrMessages is wrapped by errors that say that the template refuses this conversation
// (raise_exception), for example because roles do not alternate. The fault lies with the caller of
// the API, not with the model.
var ErrMessages = errors.New("the chat template refuses the messages")

// Limits of a conversation and of its rendered text.
const (
	maxMessages = 10_000
	maxChatText = 64 << 20 // bytes of all messages together

	messageBytes = 256 // what a message counts for beside its text
)

// Conversation is what a chat template renders.
type Conversation struct {
	Messages []api.Message
	Tools    []api.Tool // shown to the model as the template does, or by a system text of our own (toolcall.Adapt)
	// Variables are further ones that the template may read: a JSON object, or empty. Those that
	// every template is given come before them.
	Variables string
	Reply     bool // the text ends where the assistant's reply starts
}

// Chat renders a conversation as the text the model was trained on, by tokenizer.chat_template, or
// by the format that ChatFormat names if the model has none. The text may start with BOS spelled
// out; ChatIDs takes care of that. A rendering ends soon after ctx does, with its cause. Called by
// ChatIDs and by the engine.
func (t *Tokenizer) Chat(ctx context.Context, c Conversation) (string, error) {
	if err := checkMessages(c.Messages); err != nil {
		return "", err
	}
	format, err := t.chat()
	if err != nil {
		return "", err
	}
	c.Messages = t.calls().Adapt(c.Messages, c.Tools)
	explained := !t.calls().Native && len(c.Tools) > 0
	if explained {
		c.Tools = nil
	}
	text, err := format.render(ctx, t, c)
	if explained && (errors.Is(err, ErrMessages) || err == nil && !strings.Contains(text, c.Messages[0].Content)) {
		// Some templates take or show no system text, which a message of the user can hold as well.
		c.Messages = toolcall.IntoUser(c.Messages)
		if again, failed := format.render(ctx, t, c); failed == nil {
			return again, nil
		}
	}
	return text, err
}

// ToolFormat is how the model writes calls of tools.
func (t *Tokenizer) ToolFormat() *toolcall.Format { return t.calls() }

// Spans parts a text into control tokens of the vocabulary and what stands between them.
func (t *Tokenizer) Spans(text string) (out []toolcall.Span) {
	for text != "" {
		at, n, id := t.special.find(text)
		for n > 0 && !t.IsControl(id) { // a token of ordinary text
			next, m, id2 := t.special.find(text[at+n:])
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

// ChatIDs is Chat encoded: special tokens that the template spells are recognized, BOS stands in
// front once if the model asks for it (whether or not the template writes it), EOS is not added. A
// message that spells a special token is not told apart from the template, as everywhere in the
// field. Called by engine and server for every chat request.
func (t *Tokenizer) ChatIDs(ctx context.Context, msgs []api.Message, addGenerationPrompt bool) ([]int32, error) {
	text, err := t.Chat(ctx, Conversation{Messages: msgs, Reply: addGenerationPrompt})
	if err != nil {
		return nil, err
	}
	return t.EncodeChat(context.Background(), text, 0)
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

type renderFunc func(ctx context.Context, t *Tokenizer, c Conversation) (string, error)

// readChat decides on the format. A template is compiled when it is first used: most programs that
// load a tokenizer never chat.
func (t *Tokenizer) readChat(meta Metadata) {
	source, ok := meta.String(keyTemplate)
	source = strings.Clone(source) // the file may be unmapped by then
	t.calls = sync.OnceValue(func() *toolcall.Format { return toolcall.Of(source) })
	if ok && source != "" {
		t.chat = sync.OnceValues(func() (*chatFormat, error) {
			template, err := jinja.Parse(source)
			if err != nil {
				return nil, fmt.Errorf("the model's chat template cannot be used: %w", err)
			}
			return &chatFormat{"template", chatTemplate{template}.render}, nil
		})
		return
	}
	format := t.fallbackFormat()
	t.chat = func() (*chatFormat, error) { return format, nil }
}

// fallbackFormat guesses the format of a model without a template from the tokens it has.
func (t *Tokenizer) fallbackFormat() *chatFormat {
	has := func(texts ...string) bool {
		for _, text := range texts {
			if n, _ := t.special.prefix(text); n != len(text) {
				return false
			}
		}
		return true
	}
	switch {
	case has("<|im_start|>", "<|im_end|>"):
		return &chatFormat{"chatml", turns("<|im_start|>%s\n", "<|im_end|>\n")}
	case has("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"):
		return &chatFormat{"llama-3", turns("<|start_header_id|>%s<|end_header_id|>\n\n", "<|eot_id|>")}
	case t.isSPM && has("<s>", "</s>"):
		return &chatFormat{"llama-2", renderLlama2}
	}
	return &chatFormat{"plain", turns("%s: ", "\n")}
}

// turns is a format whose turns all look the same: an opening with the role, the text, a closing.
func turns(opening, closing string) renderFunc {
	return func(_ context.Context, _ *Tokenizer, c Conversation) (string, error) {
		var text strings.Builder
		for _, m := range c.Messages {
			fmt.Fprintf(&text, opening, m.Role)
			text.WriteString(m.Content)
			text.WriteString(closing)
		}
		if c.Reply {
			fmt.Fprintf(&text, strings.TrimRight(opening, " "), "assistant")
		}
		return text.String(), nil
	}
}

// renderLlama2 is the format of Llama 2 (Touvron et al. 2023): system text inside the first
// instruction, every exchange between <s> and </s>.
func renderLlama2(_ context.Context, _ *Tokenizer, c Conversation) (string, error) {
	var text strings.Builder
	system := ""
	for _, m := range c.Messages {
		content := strings.TrimSpace(m.Content)
		switch m.Role {
		case "system":
			system = "<<SYS>>\n" + content + "\n<</SYS>>\n\n"
		case "assistant":
			text.WriteString(" " + content + " </s>")
		default:
			text.WriteString("<s>[INST] " + system + content + " [/INST]")
			system = ""
		}
	}
	if system != "" {
		return "", fmt.Errorf("%w: system text without a user's message after it", ErrMessages)
	}
	return text.String(), nil
}
