package llm

import (
	"context"
	"math/rand/v2"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/engine"
	"sandwich/runtime/model"
	modelcost "sandwich/runtime/model/cost"
	"sandwich/runtime/phase"
	"sandwich/tuner/measure/spread"
)

// EmbedOptions configure Embed.
type EmbedOptions struct {
	Texts  [][]int32
	Reps   int
	Engine *engine.Engine // of a pooled model
	// Encode tokenizes the source of Texts, to measure its time separately; may be nil.
	Encode func(ctx context.Context) error
	Host   *profiles.Profile
	Step   func() // called after each of Reps+1 samples
}

// EmbedRow is the speed of a pooled model on many texts at once. Its JSON is stable.
type EmbedRow struct {
	Texts     int                `json:"texts"`
	Tokens    int                `json:"tokens"`            // of all texts
	Rate      float64            `json:"tokens_per_second"` // median
	Min       float64            `json:"min"`
	Max       float64            `json:"max"`
	Samples   []float64          `json:"samples"`
	PerText   float64            `json:"texts_per_second"`
	Forwards  float64            `json:"forwards"` // per sample
	Fill      float64            `json:"fill"`     // rows of a forward as a fraction of the plan's chunk
	Encode    float64            `json:"encode_tokens_per_second,omitempty"`
	Shares    map[string]float64 `json:"shares"` // of the time of a forward, by kind of op
	Ceiling   float64            `json:"ceiling_tokens_per_second,omitempty"`
	CeilingOf string             `json:"ceiling,omitempty"`
	Model     string             `json:"model"`
	Plan      string             `json:"plan"`
	KV        string             `json:"kv"`
	PUs       string             `json:"pus"`
	CPU       string             `json:"cpu"`
}

// RandomTexts returns texts of random tokens with uniformly distributed lengths.
func RandomTexts(seed uint64, n, shortest, longest, vocab int) (texts [][]int32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		text := make([]int32, shortest+rng.IntN(longest-shortest+1))
		for i := range text {
			text[i] = int32(rng.IntN(vocab))
		}
		texts = append(texts, text)
	}
	return texts
}

// Embed measures how fast the engine reads the texts of one request, which it packs into forwards.
// The first sample warms up. The caller sets the name of the model. `sandwich bench embed` prints
// the row.
func Embed(ctx context.Context, o EmbedOptions) (*EmbedRow, error) {
	r := o.Engine.Runner()
	row := &EmbedRow{Texts: len(o.Texts), Plan: PlanName(r.Plan), KV: r.Plan.KV.String(),
		PUs: r.Plan.Prefill.PUs.String(), CPU: o.Host.Host.CPUModel}
	for _, text := range o.Texts {
		row.Tokens += len(text)
	}
	before := o.Engine.Stats().Prefills
	for rep := range o.Reps + 1 {
		began := time.Now()
		if _, err := o.Engine.Embed(ctx, api.Embedding{Prompts: o.Texts, Rank: r.Model.Scores}); err != nil {
			return nil, err
		}
		if rep > 0 {
			row.Samples = append(row.Samples, float64(row.Tokens)/time.Since(began).Seconds())
		}
		o.Step()
	}
	row.Forwards = float64(o.Engine.Stats().Prefills-before) / float64(o.Reps+1)
	row.Fill = float64(row.Tokens) / row.Forwards / float64(r.Plan.Chunk)
	s := spread.Summarize(row.Samples)
	row.Rate, row.Min, row.Max = s.Median, s.Min, s.Max
	row.PerText = row.Rate * float64(row.Texts) / float64(row.Tokens)
	if o.Encode != nil {
		began := time.Now()
		if err := o.Encode(ctx); err != nil {
			return nil, err
		}
		row.Encode = float64(row.Tokens) / time.Since(began).Seconds()
	}
	row.Shares = shares(o.Engine.Costs(), r.Model, int(float64(row.Tokens)/row.Forwards),
		float64(row.Texts)/row.Forwards)
	if ceiling, err := ceilingOver(o.Host, r.Model, r.Plan, r.Plan.Prefill.PUs, packed(o.Texts, r.Plan.Chunk),
		float64(row.Tokens)); err == nil {
		row.Ceiling, row.CeilingOf = ceiling.rate, ceiling.String()
	}
	return row, nil
}

// shares returns the fractions of a forward's measured time by kind of op.
func shares(t *cost.Table, m *model.Model, rows int, texts float64) map[string]float64 {
	load := cost.Load{Rows: rows, Heads: max(1, int(texts)), Positions: int(float64(rows) * float64(rows) / texts / 2)}
	out, all := map[string]float64{}, 0.0
	for i := range m.Ops {
		took := t.Op(phase.Prefill, i, load).Seconds()
		out[m.Ops[i].Kind.String()] += took
		all += took
	}
	for kind := range out {
		out[kind] /= all
	}
	return out
}

// packed returns full forwards of the texts, one after another.
func packed(texts [][]int32, chunk int) (list []modelcost.Rows) {
	var f modelcost.Rows
	left := chunk
	for _, text := range texts {
		if len(text) > left && f.Spans != nil {
			list, f, left = append(list, f), modelcost.Rows{}, chunk
		}
		f.Spans = append(f.Spans, modelcost.Span{N: len(text)})
		f.Heads++
		left -= len(text)
	}
	return append(list, f)
}
