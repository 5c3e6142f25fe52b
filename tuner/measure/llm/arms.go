package llm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"sandwich/plans"
	"sandwich/runtime/counters"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// Arm is one plan with the runner that holds it.
type Arm struct {
	Name   string
	Plan   *plans.Plan
	Sync   tp.Sync
	Runner *forward.Runner
	Device *engine.Accelerator // runs its phases; nil: the cores run both

	counting counters.Set // nil unless Count was called
}

// Count adds the processor's counters of the arm's workers to its samples.
func (a *Arm) Count(from counters.Source) { a.counting = from.Open(a.Runner.Pool().Threads()) }

// Close closes the runner and frees the memory on the device.
func (a *Arm) Close() {
	a.Device.Close()
	if a.counting != nil {
		a.counting.Close()
	}
	a.Runner.Close()
}

// counted returns the counters, or zeros without Count.
func (a *Arm) counted() counters.Counts {
	if a.counting == nil {
		return counters.Counts{}
	}
	return a.counting.Read()
}

// phasePUs returns the PUs that run a test.
func (a *Arm) phasePUs(t Test) topotree.CPUSet {
	if t.Prefill {
		return a.Plan.Prefill.PUs
	}
	return a.Plan.Decode.PUs
}

// measure runs a test once and returns tokens per second.
func (a *Arm) measure(ctx context.Context, vocab int, t Test) (rate float64, err error) {
	rng := rand.New(rand.NewPCG(1, 2)) // the same tokens for every arm and repetition
	tokens := make([]int32, max(t.Tokens, t.Batch))
	for i := range tokens {
		tokens[i] = int32(rng.IntN(vocab))
	}
	a.Runner.Lead(func(l *pool.Leader) {
		began := time.Now()
		if t.Prefill {
			err = a.prefill(ctx, l, t, tokens)
		} else {
			err = a.generate(ctx, l, t, tokens)
		}
		rate = float64(t.Tokens*t.Batch) / time.Since(began).Seconds()
	})
	return rate, err
}

// prefill reads a prompt chunk by chunk and computes the logits of its last row.
func (a *Arm) prefill(ctx context.Context, l *pool.Leader, t Test, tokens []int32) error {
	line := engine.NewSequence(a.Runner, l)
	line.Through(ctx, a.Device)
	if err := line.Pass(t.Depth); err != nil {
		return err
	}
	want := engine.NoLogits
	for len(tokens) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := min(a.Plan.Chunk, len(tokens))
		if n == len(tokens) {
			want = engine.LastLogits
		}
		if err := line.Feed(tokens[:n], n, want, func(int, []float32) error { return nil }); err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	return nil
}

// generate decodes t.Tokens steps of t.Batch sequences.
func (a *Arm) generate(ctx context.Context, l *pool.Leader, t Test, tokens []int32) error {
	var b kvcache.Batch
	cache := a.Runner.NewCache()
	seqs := make([]*kvcache.Sequence, t.Batch)
	for i := range seqs {
		seqs[i] = cache.Open(kvcache.Salt{})
		if !cache.Reserve(seqs[i], t.Depth+t.Tokens) {
			return fmt.Errorf("%d sequences of %d tokens do not fit the KV cache", t.Batch, t.Depth+t.Tokens)
		}
		cache.Pass(seqs[i], t.Depth, a.Plan.Chunk)
	}
	for pos := t.Depth; pos < t.Depth+t.Tokens; pos++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.Reset()
		for i := range t.Batch {
			b.Tokens = append(b.Tokens, tokens[(pos+i)%len(tokens)])
			cache.Cover(seqs[i], pos+1)
			b.AddSpan(seqs[i], kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: pos})
			b.LogitRows = append(b.LogitRows, int32(i))
		}
		if err := a.forward(ctx, l, &b); err != nil {
			return err
		}
		for _, s := range seqs {
			cache.Advance(s, 1)
		}
	}
	return nil
}

// forward runs a batch on the cores, or on the device of the arm if it runs the phase.
func (a *Arm) forward(ctx context.Context, l *pool.Leader, b *kvcache.Batch) error {
	if a.Device != nil {
		_, err := a.Device.Forward(ctx, l, b)
		return err
	}
	_, err := a.Runner.Forward(l, b, 0, nil)
	return err
}

// onDevice reports whether the device runs a test.
func (a *Arm) onDevice(t Test) bool {
	if t.Prefill {
		return a.Device.Runs(phase.Prefill)
	}
	return a.Device.Runs(phase.Decode)
}
