package tokenizer

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"sandwich/runtime/chat"
	"sandwich/runtime/jinja"
)

// fallbackMarks has the tokens that the formats of models without a template spell.
const fallbackMarks = "<|im_start|><|im_end|><|start_header_id|><|end_header_id|><|eot_id|><s></s>"

// fallbackFormat guesses the format of a model without a template from the tokens it has.
func (t *Tokenizer) fallbackFormat() *chatFormat {
	has := func(texts ...string) bool {
		for _, text := range texts {
			if n, _ := t.special.prefix(text, len(text)); n != len(text) {
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

// markedText collects text with its origins.
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

// enclosed returns a format of which all messages look the same: an opening with the role, the
// text, a closing.
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

// renderLlama2 is the format of Llama 2 (Touvron et al. 2023): system text inside the first
// instruction, every exchange between <s> and </s>.
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

// trimmed returns a text without white space at its ends.
func trimmed(t jinja.Text) jinja.Text {
	to := len(strings.TrimRightFunc(t.Plain, unicode.IsSpace))
	from := to - len(strings.TrimLeftFunc(t.Plain[:to], unicode.IsSpace))
	return t.Slice(from, to)
}
