// Package answer answers requests of the API with an engine: it makes prompts of chats, holds
// answers to their formats and tools, parts them into reasoning, text and calls, and counts.
//
// It is what stands between server, which speaks HTTP and knows no engine, and engine, which runs
// tokens and knows no formats.
package answer

import (
	"context"
	"strings"
	"sync"
	"time"

	"sandwich/plans"
	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/grammar"
	"sandwich/runtime/server"
	"sandwich/runtime/tokenizer"
)

// Generator answers requests over an engine and the tokenizer of its model. It is what package
// server asks of whoever generates; serve and bench llm make one.
type Generator struct {
	model   server.ModelInfo
	engine  *engine.Engine
	tok     *tokenizer.Tokenizer
	verdict plans.Judgement
	forms   *forms
	// vocab is what grammars spell answers with, made for the first request that needs it.
	vocab func() *grammar.Vocab
}

// Model is what New is told of a model, for its clients.
type Model struct {
	Name, Template, Arch, Type, Digest string // as server.ModelInfo has them
	Parameters, Bytes                  int64
}

// New returns the Generator of an engine, which stays the caller's and must outlive it. The sizes
// of the model and the tokens around a text come from the engine and the tokenizer; so many
// requests run at the same time. The verdict is what plan verify said of the plan that the engine
// runs under.
func New(e *engine.Engine, tok *tokenizer.Tokenizer, told Model, parallel int, verdict plans.Judgement) *Generator {
	m := server.ModelInfo{ID: told.Name, Created: time.Now(), Context: e.Context(), Parallel: parallel,
		Arch: told.Arch, Type: told.Type, Digest: told.Digest, Parameters: told.Parameters, Bytes: told.Bytes,
		Template: strings.Clone(told.Template)} // its file may be unmapped by then
	if e.Pooled() {
		m.Vector, m.Scores = e.Runner().Model.Outputs, e.Runner().Model.Scores
	}
	if id, ok := tok.BOS(); ok {
		m.BOS = string(tok.Piece(id))
	}
	if id, ok := tok.EOS(); ok {
		m.EOS = string(tok.Piece(id))
	}
	return &Generator{model: m, engine: e, tok: tok, verdict: verdict,
		forms: newForms(formBytes, newCompilations()),
		vocab: sync.OnceValue(func() *grammar.Vocab { return Vocab(tok) })}
}

// Ready says why no request is taken at present.
func (g *Generator) Ready() error { return g.engine.Ready() }

// Models lists the one model that is served.
func (g *Generator) Models() []server.ModelInfo {
	return []server.ModelInfo{g.model}
}

// Generate runs one request of the API on the engine.
func (g *Generator) Generate(
	ctx context.Context, r api.Request, emit func(api.Token) error,
) (res api.Result, err error) {
	if err := g.generates(); err != nil {
		return res, err
	}
	if r.Prompt, err = g.Prompt(ctx, &r); err != nil {
		return res, err
	}
	parser, thinking := g.parted(&r)
	if constrained(&r) {
		var form *held
		defer func() { g.forms.put(form) }() // the engine follows no answer that it gave up
		r.Prepare = func(ctx context.Context) (api.Constraint, error) {
			h, err := g.constraint(ctx, &r, thinking)
			if err != nil {
				return nil, err
			}
			form = h
			return h, nil
		}
	}
	if parser != nil {
		return g.generateParted(ctx, r, parser, emit)
	}
	return g.engine.Generate(ctx, r, emit)
}
