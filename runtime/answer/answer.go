// Package answer turns API requests into answers with an engine: it renders prompts, enforces
// formats and tool calls, splits answers into reasoning, text and calls, and collects metrics.
//
// Package server handles HTTP and knows no engine; package engine runs tokens and knows no formats.
// This package connects them.
package answer

import (
	"context"
	"strings"
	"sync"
	"time"

	"sandwich/plans/check"
	"sandwich/runtime/api"
	"sandwich/runtime/energy"
	"sandwich/runtime/engine"
	"sandwich/runtime/grammar"
	"sandwich/runtime/model"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/status"
	"sandwich/runtime/textio"
	"sandwich/runtime/tokenizer"
)

// Generator implements generation.Generator with an engine and the tokenizer of its model. Methods
// may be called concurrently.
type Generator struct {
	model   generation.ModelInfo
	engine  *engine.Engine
	text    *textio.Adapter // of engine
	tok     *tokenizer.Tokenizer
	verdict check.Judgement
	cache   *grammarCache
	meter   *energy.Meter // nil: no metrics of energy
	info    [][2]string   // labels of sandwich_info
	plan    *status.Plan  // nil: unknown
	// vocab returns the vocabulary for grammars, built on first use.
	vocab func() *grammar.Vocab
}

// Model describes a model to its clients.
type Model struct {
	Name, Template, Arch, Type, Digest string // like the fields of generation.ModelInfo
	Parameters, Bytes                  int64
}

// New returns a Generator for an engine. The caller keeps ownership of the engine, which must
// outlive the Generator. Sizes of the model and tokens around texts come from the engine and the
// tokenizer. parallel is the number of requests that run at the same time. verdict is the result of
// plan verify for the engine's plan.
func New(e *engine.Engine, tok *tokenizer.Tokenizer, m Model, parallel int, verdict check.Judgement) *Generator {
	info := Describe(m, tok, e.Runner().Model)
	info.Context, info.Parallel = e.Context(), parallel
	text := textio.New(e, tok)
	text.FindMarks = e.Prefixes() != nil
	return &Generator{model: info, engine: e, text: text, tok: tok, verdict: verdict,
		cache: newGrammarCache(cacheBytes, newCompilations()),
		vocab: sync.OnceValue(func() *grammar.Vocab { return Vocab(tok) })}
}

// Describe returns the description of a model for clients, without Context and Parallel. It holds
// no memory of the model file. ops need no weights.
func Describe(m Model, tok *tokenizer.Tokenizer, ops *model.Model) generation.ModelInfo {
	info := generation.ModelInfo{ID: m.Name, Created: time.Now(), Arch: strings.Clone(m.Arch), Type: m.Type,
		Digest: m.Digest, Parameters: m.Parameters, Bytes: m.Bytes, Template: strings.Clone(m.Template)}
	if ops.Pooled() {
		info.Vector, info.Scores = ops.Outputs, ops.Scores
	}
	if id, ok := tok.BOS(); ok {
		info.BOS = string(tok.Piece(id))
	}
	if id, ok := tok.EOS(); ok {
		info.EOS = string(tok.Piece(id))
	}
	return info
}

// Meter adds the energy that a meter reads to the metrics. It must be called before the Generator
// is used; the caller closes the meter.
func (g *Generator) Meter(m *energy.Meter) { g.meter = m }

// Describe sets the labels of the metric sandwich_info. It must be called before the Generator is
// used.
func (g *Generator) Describe(labels ...[2]string) { g.info = labels }

// Ready returns an error that states why the engine accepts no requests at present, or nil.
func (g *Generator) Ready() error { return g.engine.Ready() }

// Model describes the model that is served.
func (g *Generator) Model() generation.ModelInfo { return g.model }

// Generate runs one request and calls emit for each token. Errors are those of Prompt, of the
// engine, and *api.InvalidError for formats that cannot be enforced.
func (g *Generator) Generate(
	ctx context.Context, r api.Request, emit func(api.Token) error,
) (res api.Result, err error) {
	if err := g.generates(); err != nil {
		return res, err
	}
	if r.Prompt, err = g.Prompt(ctx, &r); err != nil {
		return res, err
	}
	parser, thinking := g.parserFor(&r)
	if constrained(&r) {
		var used *lease
		defer func() { g.cache.put(used) }() // the engine no longer uses the constraint of an abandoned answer
		r.Prepare = func(ctx context.Context) (api.Constraint, error) {
			h, err := g.constraint(ctx, &r, thinking)
			if err != nil {
				return nil, err
			}
			used = h
			return h, nil
		}
	}
	if parser != nil {
		return g.generateParsed(ctx, r, parser, emit)
	}
	return g.text.Generate(ctx, r, emit)
}
