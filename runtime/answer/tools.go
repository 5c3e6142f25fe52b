package answer

import (
	"context"
	"crypto/rand"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
	"sandwich/runtime/toolcall"
)

// mayCall reports whether the answer may call tools.
func mayCall(r *api.Request) bool {
	return r.Chat() && len(r.Tools) > 0 && r.ToolChoice.Mode != api.ToolsNone
}

// callGrammar compiles the grammar of text and calls of the request's tools.
func (g *Generator) callGrammar(m *grammar.Meter, r *api.Request, thinking bool) (*grammar.Grammar, []string, error) {
	if r.Format.Kind == api.GBNF {
		return nil, nil, &api.InvalidError{Param: r.Format.Param, Message: "cannot be used together with tools; " +
			`leave one of them out or set tool_choice to "none"`}
	}
	return g.tok.ToolFormat().Grammar(m, r, g.tok.Spans, thinking)
}

// reasoningTail is the number of tokens at the end of a prompt that may open reasoning.
const reasoningTail = 8

// parserFor returns a Parser that splits the answer of a chat into reasoning, text and calls, or
// nil if the answer is only text. thinking reports that the prompt ends inside reasoning.
func (g *Generator) parserFor(r *api.Request) (p *toolcall.Parser, thinking bool) {
	f := g.tok.ToolFormat()
	if !r.Chat() || !f.Reasons() && !mayCall(r) {
		return nil, false
	}
	tail := r.Prompt[max(0, len(r.Prompt)-reasoningTail):]
	thinking = f.Thinking(g.tok.Decode(tail, true))
	tools := r.Tools
	if !mayCall(r) {
		tools = nil
	}
	return f.NewParser(tools, thinking, func() string { return rand.Text()[:9] }), thinking
}

// generateParsed runs a request and splits its answer with p.
func (g *Generator) generateParsed(ctx context.Context, r api.Request, p *toolcall.Parser,
	emit func(api.Token) error) (api.Result, error) {
	r.Control = mayCall(&r) || g.tok.ToolFormat().HasControl(g.tok.Spans)
	res, err := g.text.Generate(ctx, r, func(t api.Token) error {
		d := p.Push(t.Text)
		t.Text, t.Reasoning, t.Calls = d.Text, d.Reasoning, d.Calls
		return emit(t)
	})
	if err != nil {
		return res, err
	}
	if d := p.End(); d.Text != "" || d.Reasoning != "" || len(d.Calls) > 0 {
		last := api.Token{Text: d.Text, Reasoning: d.Reasoning, Calls: d.Calls}
		last.ID = api.NoToken
		err = emit(last)
	}
	if p.Calls() > 0 && res.Finish == api.FinishStop {
		res.Finish = api.FinishCalls
	}
	return res, err
}
