package measure

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/tuner/measure/spread"
)

// constrainedGoal is the fraction of the tokens per second of plain answers that constrained ones
// must reach.
const constrainedGoal = 0.95

// ConstrainedOptions configure Constrained.
type ConstrainedOptions struct {
	Clients int
	Tokens  int // per client, in one answer or several
	Vocab   int
	Reps    int
	Schema  string
	// Generate answers a request under its Format.
	Generate func(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error)
	Step     func() // called after each of Reps+1 samples
}

// ConstrainedRow compares answers under a schema with plain ones. Its JSON is stable.
type ConstrainedRow struct {
	Test         string    `json:"test"`
	Clients      int       `json:"clients"`
	Schema       string    `json:"schema"`
	Plain        float64   `json:"plain_tokens_per_second"`
	Constrained  float64   `json:"constrained_tokens_per_second"`
	Share        float64   `json:"share"` // median over adjacent samples
	Goal         float64   `json:"goal"`
	Answers      int       `json:"answers"` // under the schema, in all samples
	Plains       []float64 `json:"plain_samples"`
	Constraineds []float64 `json:"constrained_samples"`
	Model        string    `json:"model"`
	Plan         string    `json:"plan"`
	PUs          string    `json:"pus"`
	CPU          string    `json:"cpu"`
}

// Constrained measures answers under a schema and plain ones interleaved, at temperature 1 from the
// 40 most likely tokens. Each constrained answer has its own salt, so that its grammar is compiled
// and its masks are computed anew. The caller sets the names of schema, model, plan and CPU.
// `sandwich bench llm schema F --clients 8` prints the row.
func Constrained(ctx context.Context, o ConstrainedOptions) (*ConstrainedRow, error) {
	row := &ConstrainedRow{Test: fmt.Sprintf("tg%d", o.Tokens), Clients: o.Clients, Goal: constrainedGoal}
	c := constrained{ConstrainedOptions: o, prompts: clientPrompts(o.Clients, o.Vocab)}
	var shares []float64
	for rep := range o.Reps + 1 {
		var rates [2]float64
		for i := range rates {
			held := (rep+i)%2 == 1 // each goes first in every second sample
			rate, err := c.run(ctx, held)
			if err != nil {
				return nil, err
			}
			if held {
				rates[1] = rate
			} else {
				rates[0] = rate
			}
		}
		if rep > 0 { // the first sample warms up
			row.Plains, row.Constraineds = append(row.Plains, rates[0]), append(row.Constraineds, rates[1])
			shares = append(shares, rates[1]/rates[0])
		}
		o.Step()
	}
	row.Plain, row.Constrained = spread.Summarize(row.Plains).Median, spread.Summarize(row.Constraineds).Median
	row.Share, row.Answers = spread.Summarize(shares).Median, c.answers
	return row, nil
}

type constrained struct {
	ConstrainedOptions
	prompts [][]int32
	mu      sync.Mutex
	answers int // under the schema; the salt of the next one
}

// run generates with all clients at the same time and returns the tokens per second of all.
func (c *constrained) run(ctx context.Context, held bool) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	began := time.Now()
	for _, prompt := range c.prompts {
		all.Go(func() {
			for left := c.Tokens; left > 0; {
				n, err := c.one(ctx, prompt, left, held)
				if err != nil {
					cancel(err) // the first error counts
					return
				}
				left -= n
			}
		})
	}
	all.Wait()
	return float64(c.Tokens*len(c.prompts)) / time.Since(began).Seconds(), context.Cause(ctx)
}

// one generates an answer of at most limit tokens and returns its number of tokens.
func (c *constrained) one(ctx context.Context, prompt []int32, limit int, held bool) (int, error) {
	r := api.Request{Prompt: prompt, MaxTokens: limit, IgnoreEOS: !held,
		Sampling: api.Sampling{Temperature: 1, TopK: 40, Seed: uint64(limit)}}
	if held {
		c.mu.Lock()
		c.answers++
		binary.LittleEndian.PutUint64(r.Salt[:], uint64(c.answers))
		c.mu.Unlock()
		r.Format = api.Format{Kind: api.JSONSchema, Text: c.Schema, Param: "schema"}
	}
	res, err := c.Generate(ctx, r, func(api.Token) error { return nil })
	if err == nil && res.Tokens == 0 {
		err = fmt.Errorf("an answer of at most %d tokens has none", limit)
	}
	return res.Tokens, err
}
