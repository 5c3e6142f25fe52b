package tokenizer

import (
	"context"
	"errors"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/chat"
	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
)

// Chat renders a conversation with tokenizer.chat_template, or with the format that ChatFormat
// names if the model has no template. The text may start with the spelling of BOS; EncodeChat does
// not add a second one. If the template refuses the messages or does not show a system, user or
// tool text, Chat merges messages and renders them again (package chat), at last with contents as
// lists of parts. It returns the cause of ctx soon after ctx ends.
func (t *Tokenizer) Chat(ctx context.Context, c Conversation) (Prompt, error) {
	if err := checkMessages(c.Messages); err != nil {
		return Prompt{}, err
	}
	format, err := t.chat()
	if err != nil {
		return Prompt{}, err
	}
	h := chat.New(t.calls(), c.Messages, c.Tools)
	try := func() (attempt, error) {
		return tryVersions(ctx, h, func(v *chat.Version) (jinja.Output, error) {
			return format.render(ctx, t, h, v, c)
		})
	}
	a, err := try()
	limit := new(jinja.LimitError)
	if (err != nil || len(a.missing) > 0) && ctx.Err() == nil && !errors.As(err, &limit) {
		c.typed = true
		b, failed := try()
		if failed == nil && (err != nil || len(b.missing) < len(a.missing)) && !printsParts(b.out.Text) {
			a, err = b, nil
		}
	}
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

// printsParts reports whether a template printed the list of parts of a content instead of their
// texts.
func printsParts(out jinja.Text) bool {
	from := 0
	for _, s := range out.Spans {
		plain := out.Plain[from:s.From]
		if strings.HasSuffix(plain, "{'type': 'text', 'text': '") ||
			strings.HasSuffix(plain, `{"type": "text", "text": "`) {
			return true
		}
		from = s.To
	}
	return false
}

// EncodeChat encodes a prompt. If the model asks for BOS, the result starts with exactly one,
// whether or not the template writes it; EOS is not added. Control tokens are recognized where the
// template, a system message or the assistant spells them. They are not recognized in the text of
// users and tools, nor across its boundaries. It stops early as EncodeContext and
// EncodeOptions.Limit describe.
func (t *Tokenizer) EncodeChat(ctx context.Context, p Prompt, limit int) ([]int32, error) {
	var ids []int32
	text := guardedText{text: p.Text, guarded: p.guarded}
	if t.addBOS {
		ids = append(ids, t.bos)
		spelled := string(t.Piece(t.bos))
		if strings.HasPrefix(p.Text, spelled) && (len(p.guarded) == 0 || p.guarded[0].from >= len(spelled)) {
			text.from = len(spelled)
		}
	}
	return t.encodeText(ctx, ids, text, EncodeOptions{ParseSpecial: true, Limit: limit})
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
