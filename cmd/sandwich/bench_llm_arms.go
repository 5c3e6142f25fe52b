package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"sandwich/plans"
	"sandwich/runtime/counters"
	"sandwich/runtime/engine"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
)

var syncs = map[string]exec.Sync{"a": exec.SyncA, "b": exec.SyncB}

// llmArm is one plan with the runner that holds it.
type llmArm struct {
	name   string
	plan   *plans.Plan
	sync   exec.Sync
	runner *engine.Runner

	counting counters.Set // nil without --counters
}

func (a *llmArm) close() {
	if a.counting != nil {
		a.counting.Close()
	}
	a.runner.Close()
}

// chooseArms is the chosen plan, with each way to wait where it has several ranks, and to compare
// with it the untuned one of one rank.
func (f *llmFlags) chooseArms(s *session) (chosen []*llmArm, err error) {
	if err := s.choose(&f.session); err != nil {
		return nil, err
	}
	plan := s.plan
	if plan.TP() == 1 {
		chosen = []*llmArm{{name: armName(plan), plan: plan}}
	} else {
		for _, sync := range f.sync {
			chosen = append(chosen, &llmArm{name: fmt.Sprintf("%s, %d ranks, sync %s", armName(plan), plan.TP(), sync),
				plan: plan, sync: syncs[sync]})
		}
	}
	if f.compare && (plan.Tuned || plan.TP() > 1) {
		flags := f.session
		flags.ranks = 1
		untuned, _, err := flags.untuned(s.profile, s.shape)
		if err != nil {
			return nil, usageError(err)
		}
		chosen = append(chosen, &llmArm{name: "untuned", plan: untuned})
	}
	return chosen, nil
}

// openArms loads the model for every arm.
func (f *llmFlags) openArms(ctx context.Context, s *session) ([]*llmArm, error) {
	chosen, err := f.chooseArms(s)
	if err != nil {
		return nil, err
	}
	tests := f.tests()
	var open []*llmArm
	for _, a := range chosen {
		s.plan = a.plan
		o, done := s.runnerOptions(kvcache.BlocksFor(positions(tests)), f.batch)
		o.Sync, o.Sequences = a.sync, f.batch
		runner, err := engine.Open(ctx, o)
		done()
		if err != nil {
			return open, modelError(err)
		}
		s.noticeFallen(runner)
		a.runner = runner
		if f.counters {
			a.counting = f.source.Open(runner.Pool().Threads())
		}
		open = append(open, a)
	}
	return open, nil
}

func armName(p *plans.Plan) string {
	if p.Tuned {
		return p.Name
	}
	return "untuned"
}

// measure runs a test once and returns tokens per second.
func (a *llmArm) measure(ctx context.Context, s *session, t llmTest) (rate float64, err error) {
	rng := rand.New(rand.NewPCG(1, 2)) // the same tokens for every arm and repetition
	tokens := make([]int32, max(t.tokens, t.batch))
	for i := range tokens {
		tokens[i] = int32(rng.IntN(s.shape.Vocab))
	}
	a.runner.Lead(func(l *pool.Leader) {
		began := time.Now()
		if t.prefill {
			err = a.prefill(ctx, l, tokens)
		} else {
			err = a.generate(ctx, l, t, tokens)
		}
		rate = float64(t.tokens*t.batch) / time.Since(began).Seconds()
	})
	return rate, err
}

// prefill feeds a prompt from an empty cache, chunk by chunk, and wants the logits behind it.
func (a *llmArm) prefill(ctx context.Context, l *pool.Leader, tokens []int32) error {
	line := engine.NewLine(a.runner, l)
	want := engine.NoLogits
	for len(tokens) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := min(a.plan.Chunk, len(tokens))
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

// generate decodes t.tokens steps of t.batch sequences, each from an empty cache.
func (a *llmArm) generate(ctx context.Context, l *pool.Leader, t llmTest, tokens []int32) error {
	var b kvcache.Batch
	cache := a.runner.NewCache()
	seqs := make([]*kvcache.Sequence, t.batch)
	for i := range seqs {
		seqs[i] = cache.Open(kvcache.Salt{})
		if !cache.Reserve(seqs[i], t.tokens) {
			return fmt.Errorf("%d sequences of %d tokens do not fit the KV cache", t.batch, t.tokens)
		}
	}
	for pos := range t.tokens {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.Reset()
		for i := range t.batch {
			b.Tokens = append(b.Tokens, tokens[(pos+i)%len(tokens)])
			cache.Cover(seqs[i], pos+1)
			b.AddSpan(seqs[i], kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: pos})
			b.LogitRows = append(b.LogitRows, int32(i))
		}
		if _, err := a.runner.Forward(l, &b, 0, nil); err != nil {
			return err
		}
		for _, s := range seqs {
			cache.Advance(s, 1)
		}
	}
	return nil
}
