package tokenizer

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"sandwich/runtime/chat"
	"sandwich/runtime/jinja"
)

// fallbackMarks contains the special tokens that the fallback formats write.
const fallbackMarks = "<|im_start|><|im_end|><|start_header_id|><|end_header_id|><|eot_id|><s></s>"

// fallbackFormat selects a format for a model without a template by the tokens in its vocabulary.
func (t *Tokenizer) fallbackFormat() *chatFormat {
	has := func(texts ...string) bool {
		for _, text := range texts {
			if n, _ := t.special.Prefix(text, len(text)); n != len(text) {
				return false
			}
		}
		return true
	}
	switch {
	case has("<|im_start|>", "<|im_end|>"):
		return &chatFormat{"chatml", enclosed("<|im_start|>%s\n", "<|im_end|>\n")}
	case has("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"):
		return &chatFormat{"llama-3", enclosed("<|start_header_id|>%s<|end_header_id|>\n\n", "<|eot_id|>")}
	case t.isSPM && has("<s>", "</s>"):
		return &chatFormat{"llama-2", renderLlama2}
	}
	return &chatFormat{"plain", enclosed("%s: ", "\n")}
}

// markedText collects text and the origins of its parts.
type markedText struct {
	strings.Builder
	spans []jinja.Span
}

func (b *markedText) add(text jinja.Text) {
	at := b.Len()
	b.WriteString(text.Plain)
	for _, s := range text.Spans {
		b.spans = append(b.spans, jinja.Span{From: s.From + at, To: s.To + at, Origin: s.Origin})
	}
}

func (b *markedText) output() jinja.Output {
	return jinja.Output{Text: jinja.Text{Plain: b.String(), Spans: b.spans}}
}

// enclosed returns a format that writes every message as opening, content and closing. opening is a
// format string with a verb for the role.
func enclosed(opening, closing string) renderFunc {
	return func(_ context.Context, _ *Tokenizer, _ *chat.History, v *chat.Version, c Conversation) (jinja.Output,
		error) {
		var text markedText
		for i := range v.Messages {
			fmt.Fprintf(&text, opening, v.Messages[i].Role)
			text.add(v.Messages[i].Content())
			text.WriteString(closing)
		}
		if c.Reply {
			fmt.Fprintf(&text, strings.TrimRight(opening, " "), "assistant")
		}
		return text.output(), nil
	}
}

// renderLlama2 writes the format of Llama 2 (Touvron et al. 2023): the system text is part of the
// first instruction, and each exchange is enclosed in <s> and </s>.
func renderLlama2(_ context.Context, _ *Tokenizer, _ *chat.History, v *chat.Version, _ Conversation) (jinja.Output,
	error) {
	var text markedText
	var system *jinja.Text
	for i := range v.Messages {
		content := trimmed(v.Messages[i].Content())
		switch v.Messages[i].Role {
		case "system":
			system = &content
		case "assistant":
			text.WriteString(" ")
			text.add(content)
			text.WriteString(" </s>")
		default:
			text.WriteString("<s>[INST] ")
			if system != nil {
				text.WriteString("<<SYS>>\n")
				text.add(*system)
				text.WriteString("\n<</SYS>>\n\n")
			}
			text.add(content)
			text.WriteString(" [/INST]")
			system = nil
		}
	}
	if system != nil {
		return jinja.Output{}, fmt.Errorf("%w: no user message follows the system text", ErrMessages)
	}
	return text.output(), nil
}

// trimmed returns a text without leading and trailing white space.
func trimmed(t jinja.Text) jinja.Text {
	to := len(strings.TrimRightFunc(t.Plain, unicode.IsSpace))
	from := to - len(strings.TrimLeftFunc(t.Plain[:to], unicode.IsSpace))
	return t.Slice(from, to)
}
