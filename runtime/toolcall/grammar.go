package toolcall

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// Spans splits text into control tokens of the vocabulary and the text between them. The tokenizer
// implements it, because a control token cannot be spelled with ordinary tokens.
type Spans func(text string) []Span

// Span is a part of a text.
type Span struct {
	Text    string
	Control bool // the span is one control token
}

// Grammar compiles the grammar of an answer with tools: free text, or text in the request's format,
// and calls as the tool choice allows or requires them. thinking states that the prompt ends inside
// reasoning.
//
// Unsupported keywords of a tool's schema are left out and named in warnings; strict tools with
// such keywords are refused. Errors about a tool are *api.InvalidError, unenforced are errors of
// package grammar.
func (f *Format) Grammar(m *grammar.Meter, r *api.Request, spans Spans, thinking bool) (
	g *grammar.Grammar, warnings []string, err error) {
	w := &builder{Format: f, spans: spans, tools: readTools(r.Tools)}
	for i := range w.tools {
		t := &w.tools[i]
		t.warn = func(path, reason string) {
			text := fmt.Sprintf("tools[%d] (%s): %s of its parameters is not enforced: %s", i, t.name, clip(path),
				clip(reason))
			if !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
		note := t.warn
		if r.Tools[i].Strict {
			note = nil
		}
		t.schema = grammar.NewSchema(t.text, note)
	}
	g, err = m.Compose(w.answer(r, thinking))
	return g, warnings, w.refusal(err)
}

// clip shortens a text that may quote a long schema.
func clip(text string) string {
	const limit = 400
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}

// refusal adds the tool to an error about its schema.
func (w *builder) refusal(err error) error {
	var e *grammar.Error
	if !errors.As(err, &e) || grammar.Owner(e) == nil {
		return err
	}
	for i, t := range w.tools {
		switch field := fmt.Sprintf("tools[%d]", i); {
		case t.schema != grammar.Owner(e):
		case e.Unwrap() != nil || e.Limited():
			return fmt.Errorf("%s (%s): %w", field, t.name, err)
		default:
			return &api.InvalidError{Param: field, Message: fmt.Sprintf("(%s) is strict, and its parameters cannot be "+
				"enforced: %s; change them or leave out strict", t.name, api.Printable(e.Error(), ""))}
		}
	}
	return err
}

// answer returns the grammar of the whole answer.
func (w *builder) answer(r *api.Request, thinking bool) grammar.Piece {
	calls := w.calls(r)
	switch {
	case r.ToolChoice.Mode == api.ToolsRequired && !thinking:
		return calls
	case r.ToolChoice.Mode == api.ToolsRequired:
		rest := grammar.OneOf(grammar.Exactly(""), grammar.Exactly("\n"), grammar.Exactly("\n\n"))
		return grammar.InOrder(w.text(w.reasoningEnd), w.literal(w.reasoningEnd), rest, calls)
	case r.Format.Kind == api.JSONObject:
		return grammar.OneOf(grammar.Matching([]byte(anyArguments), ""), calls)
	case r.Format.Kind == api.JSONSchema:
		return grammar.OneOf(grammar.Matching([]byte(r.Format.Text), ""), calls)
	case w.marker == "":
		return grammar.OneOf(w.notCall(), calls)
	}
	return grammar.InOrder(w.free(), grammar.Optional(calls))
}

// builder builds the parts of a grammar.
type builder struct {
	*Format
	spans Spans
	tools []tool
}

// literal matches a text of the format, including its control tokens.
func (w *builder) literal(text string) grammar.Piece {
	var all []grammar.Piece
	for _, s := range w.spans(text) {
		if s.Control {
			all = append(all, grammar.Control(s.Text))
		} else {
			all = append(all, grammar.Exactly(s.Text))
		}
	}
	return grammar.InOrder(all...)
}

// text matches text that contains neither the marker of calls nor any of until.
func (w *builder) text(until ...string) grammar.Piece {
	if w.marker != "" {
		until = append(until, w.marker)
	}
	return grammar.Without(until...)
}

// free matches text without calls, and the control tokens around reasoning and text.
func (w *builder) free() grammar.Piece {
	var marks []grammar.Piece
	for _, m := range []string{w.reasoning, w.reasoningEnd, w.textMark} {
		for _, s := range w.spans(m) {
			if s.Control {
				marks = append(marks, w.literal(m))
				break
			}
		}
	}
	if w.reasoningEnd == "<|end|>" {
		marks = append(marks, w.literal("<|start|>assistant"))
	}
	if len(marks) == 0 {
		return w.text()
	}
	return grammar.InOrder(w.text(), grammar.AnyNumber(grammar.InOrder(grammar.OneOf(marks...), w.text())))
}

// notCall matches text that does not start like a call.
func (w *builder) notCall() grammar.Piece { return grammar.NotBeginning(w.first) }

// calls matches one or more calls of the allowed tools.
func (w *builder) calls(r *api.Request) grammar.Piece {
	var each []grammar.Piece
	for _, t := range w.tools {
		if len(r.ToolChoice.Names) == 0 || slices.Contains(r.ToolChoice.Names, t.name) {
			each = append(each, grammar.InOrder(w.literal(w.before+t.name+w.middle), w.arguments(&t),
				w.literal(w.after)))
		}
	}
	one := grammar.OneOf(each...)
	all := one
	if !r.OneCall && !w.single {
		all = grammar.InOrder(one, grammar.AnyNumber(grammar.InOrder(w.literal(w.between), one)))
	}
	return grammar.InOrder(w.literal(w.open), all, w.literal(w.close))
}

// arguments matches the arguments of a tool: a JSON object, or named arguments in schema order. If
// named arguments have separators, required ones come first.
func (w *builder) arguments(t *tool) grammar.Piece {
	if w.args == nil {
		return t.schema.Matching("")
	}
	var must, may []grammar.Piece
	var inOrder []grammar.Piece
	for i := range t.params {
		p := &t.params[i]
		entry := w.argument(t, p)
		if p.required {
			must = append(must, entry)
			inOrder = append(inOrder, entry)
		} else {
			may = append(may, entry)
			inOrder = append(inOrder, grammar.Optional(entry))
		}
	}
	if w.args.between == "" {
		return grammar.InOrder(inOrder...)
	}
	return w.separated(must, may)
}

// separated matches all of must and any of may, with separators between them.
func (w *builder) separated(must, may []grammar.Piece) grammar.Piece {
	between := w.literal(w.args.between)
	rest := func(may []grammar.Piece) grammar.Piece {
		var out []grammar.Piece
		for _, p := range may {
			out = append(out, grammar.Optional(grammar.InOrder(between, p)))
		}
		return grammar.InOrder(out...)
	}
	if len(must) == 0 {
		some := []grammar.Piece{grammar.Exactly("")}
		for i, p := range may {
			some = append(some, grammar.InOrder(p, rest(may[i+1:])))
		}
		return grammar.OneOf(some...)
	}
	out := []grammar.Piece{must[0]}
	for _, p := range must[1:] {
		out = append(out, grammar.InOrder(between, p))
	}
	return grammar.InOrder(append(out, rest(may))...)
}

// pointer escapes a property name for a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// argument matches one named argument.
func (w *builder) argument(t *tool, p *param) grammar.Piece {
	a := w.args
	path := "/properties/" + pointer.Replace(p.name)
	value := t.schema.Matching(path)
	if p.text && len(p.choices) == 0 && (a.raw || a.quote != "") {
		for _, key := range p.unenforced {
			t.warn("#"+path+"/"+key, "the model writes strings of arguments as they are")
		}
	}
	switch {
	case p.text && a.raw:
		value = w.rawText(p, strings.TrimRight(a.after, "\n"))
	case p.text && a.quote != "":
		value = grammar.InOrder(w.literal(a.quote), w.rawText(p, a.quote), w.literal(a.quote))
	case p.boolean && a.python:
		value = grammar.OneOf(grammar.Exactly("True"), grammar.Exactly("False"))
	}
	return grammar.InOrder(w.literal(a.before), grammar.Exactly(p.name), w.literal(a.middle), value, w.literal(a.after))
}

// rawText matches an unquoted string up to its end mark.
func (w *builder) rawText(p *param, end string) grammar.Piece {
	if len(p.choices) == 0 {
		return grammar.Without(end)
	}
	var all []grammar.Piece
	for _, c := range p.choices {
		all = append(all, grammar.Exactly(c))
	}
	return grammar.OneOf(all...)
}
