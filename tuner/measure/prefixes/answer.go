// Package prefixes measures the prefix store of an engine: loads after a restart, the hit ratio of
// a small folder, and the times of tokens while the store writes.
package prefixes

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache/disk"
)

// Open opens an engine that runs one request at a time and loads whatever is in a store; nil: an
// engine without a store. The caller closes it.
type Open func(ctx context.Context, s *disk.Store) (*engine.Engine, error)

// answer is what a request gave.
type answer struct {
	first time.Duration // from the call to the first token
	gaps  []float64     // seconds between tokens
	bits  []uint32      // ids and log probabilities of the tokens and their alternatives
	api.Result
}

// alternatives is the number of alternatives per token whose log probabilities are compared.
const alternatives = 8

// generate runs a request of a prompt for so many tokens. keep stores the prompt.
func generate(ctx context.Context, e *engine.Engine, prompt []int32, tokens int, keep bool) (a answer, err error) {
	began := time.Now()
	last := began
	req := api.Request{Prompt: prompt, MaxTokens: tokens, IgnoreEOS: true, Logprobs: true, TopLogprobs: alternatives,
		Keep: keep}
	a.Result, err = e.Generate(ctx, req, func(t api.Token) error {
		now := time.Now()
		if a.first == 0 {
			a.first = now.Sub(began)
		} else {
			a.gaps = append(a.gaps, now.Sub(last).Seconds())
		}
		last = now
		for _, p := range append(t.Top, t.TokenLogprob) {
			a.bits = append(a.bits, uint32(p.ID), math.Float32bits(p.Logprob))
		}
		return nil
	})
	return a, err
}

// randomTokens returns n random tokens of a vocabulary. Equal seeds give equal tokens.
func randomTokens(seed uint64, n, vocab int) []int32 {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(vocab))
	}
	return ids
}

// errNoStore reports a model whose prompts have no prefixes.
var errNoStore = errors.New("this model reads whole texts and has no prefixes to store")
