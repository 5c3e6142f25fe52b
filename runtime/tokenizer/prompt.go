package tokenizer

import (
	"strings"

	"sandwich/runtime/chat"
	"sandwich/runtime/jinja"
	"sandwich/runtime/tokenizer/internal/tables"
)

// Prompt is a rendered conversation.
type Prompt struct {
	Text string

	guarded []span       // parts that users and tools wrote, ascending
	texts   []jinja.Span // of messages and tools; message i has origin i+1, tools follow the last message
	end     int          // end of the last message's text in Text
}

// span is the range [from, to) of a text, in bytes.
type span struct{ from, to int }

func newPrompt(h *chat.History, out jinja.Output) Prompt {
	p := Prompt{Text: out.Plain, texts: out.Spans, end: len(out.Plain)}
	for _, s := range out.Spans {
		if h.Guarded(s.Origin) {
			p.guarded = append(p.guarded, span{s.From, s.To})
		}
	}
	if end, ok := h.End(out.Text); ok {
		p.end = end
	}
	return p
}

// Continued returns the prompt up to the end of the last message's text, without trailing white
// space and without what the template writes after the message. A reply then continues that
// message.
func (p Prompt) Continued() Prompt {
	p.Text = p.Text[:p.end]
	return p
}

// After returns the position in Text after a part of the content of a message: the bytes of content
// up to n. If Text does not have this part, the position is after the message or after the last one
// before it that Text has; it is 0 if there is none.
func (p Prompt) After(message int, content string, n int) int {
	if part := strings.TrimSpace(content[:min(n, len(content))]); part != "" && n < len(content) {
		for _, s := range p.texts {
			if s.Origin != jinja.Origin(message+1) {
				continue
			}
			from, to := min(s.From, len(p.Text)), min(s.To, len(p.Text))
			if i := strings.Index(p.Text[from:to], part); i >= 0 {
				return from + i + len(part)
			}
		}
	}
	for ; message >= 0; message-- {
		if last := p.afterTexts(message); last > 0 {
			return last
		}
	}
	return 0
}

// AfterTools returns the position in Text after the declarations of tools of a conversation of so
// many messages, or 0 if it has none.
func (p Prompt) AfterTools(messages int) int { return p.afterTexts(messages) }

// afterTexts returns the end of the last text of a message, or 0.
func (p Prompt) afterTexts(message int) (last int) {
	for _, s := range p.texts {
		if s.Origin == jinja.Origin(message+1) {
			last = min(s.To, len(p.Text))
		}
	}
	return last
}

// Until returns the prompt up to a position in Text.
func (p Prompt) Until(at int) Prompt {
	out := Prompt{Text: p.Text[:at], end: min(p.end, at)}
	for _, g := range p.guarded {
		if g.from < at {
			out.guarded = append(out.guarded, span{g.from, min(g.to, at)})
		}
	}
	return out
}

// guardedText is a text to encode: the bytes of text starting at from. Control tokens are not
// recognized in the ranges guarded.
type guardedText struct {
	text    string
	from    int
	guarded []span
}

// newGuards returns the guards for a chat format whose source is spelled. User-defined tokens are
// recognized everywhere, unless the format writes them as markup, such as <|User|>: to the model
// they are control tokens.
func (t *Tokenizer) newGuards(spelled string) *guards {
	g := &guards{tables.NewMatcher(), tables.NewMatcher()}
	t.special.Each(0, nil, func(text string, id int32) {
		free := t.user.Has(text) && !(isMarkup(text) && strings.Contains(spelled, text))
		g.trusted.Add(text, id, free)
		if free {
			g.guarded.Add(text, id, true)
		}
	})
	return g
}

// isMarkup reports whether a token has the form <...> or [...].
func isMarkup(text string) bool {
	if len(text) < 3 {
		return false
	}
	first, last := text[0], text[len(text)-1]
	return first == '<' && last == '>' || first == '[' && last == ']'
}

// find returns the first special token at or after from: its position, its length in bytes and its
// id. If there is none it returns (len(text), 0, -1). Successive calls must use ascending values of
// from.
func (g *guards) find(t *guardedText, from int) (at, n int, token int32) {
	for from < len(t.text) {
		for len(t.guarded) > 0 && t.guarded[0].to <= from {
			t.guarded = t.guarded[1:]
		}
		m, end := g.trusted, len(t.text)
		switch {
		case len(t.guarded) == 0:
		case t.guarded[0].from <= from:
			m, end = g.guarded, min(end, t.guarded[0].to)
		default:
			end = min(end, t.guarded[0].from)
		}
		if at, n, token = m.Find(t.text[from:], end-from); n > 0 {
			return from + at, n, token
		}
		from = end
	}
	return len(t.text), 0, -1
}
