package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/engine/forecast"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/gguf"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// TestBatchInvariant checks that tokens and log probabilities of a request are those of the request
// alone, to the bit, under every policy: with halts in cut ops, in batches with others, after
// preemption and after aging.
func TestBatchInvariant(t *testing.T) {
	seeds := uint64(12)
	if raceEnabled {
		seeds = 4 // one a policy
	}
	batchInvariant(t, microkernel.AttendF32, seeds)
}

// TestBatchInvariantByDots is TestBatchInvariant with attention by other dot products.
func TestBatchInvariantByDots(t *testing.T) {
	skipUnderRace(t)
	for _, d := range attentionDots() {
		t.Run(d.String(), func(t *testing.T) { batchInvariant(t, d, 6) })
	}
}

// batchInvariant runs TestBatchInvariant with a dot product of attention and a number of seeds.
func batchInvariant(t *testing.T, dot microkernel.AttentionDot, seeds uint64) {
	tinyOptions := func(t testing.TB) Options {
		o := tinyOptions(t)
		if dot.Reads(o.Plan.KV) != nil { // whose heads are too short
			o = optionsFor(t, smallModel(t, "qwen3", gguf.Q8_0))
			o.Plan.KV = microkernel.KVQ8
		}
		o.Plan.Attention = dot
		return o
	}
	var requests []api.Request
	for i := range 7 {
		requests = append(requests, api.Request{Prompt: tinyPrompt(uint64(i), 20+31*i%100), MaxTokens: 8,
			IgnoreEOS: true, Logprobs: true, Class: sched.Class(min(i%3, 1)),
			Sampling: api.Sampling{Temperature: 1, Seed: uint64(i)}})
	}
	alone := byHand(t, tinyOptions(t))
	var want [][]drawnToken
	alone.runner.Lead(func(l *pool.Leader) {
		for _, r := range requests {
			j := alone.enter(t, r)
			for alone.forward(l) != nil {
			}
			steps, _ := j.out.take()
			want = append(want, steps)
		}
	})
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 5))
		o := tinyOptions(t)
		o.Policy = sched.Policies()[seed%4]
		o.Bound = []time.Duration{1, time.Microsecond, time.Second}[rng.IntN(3)]
		o.Aging = []time.Duration{1, time.Hour}[rng.IntN(2)]
		o.TPOT = []time.Duration{0, time.Microsecond, time.Hour}[rng.IntN(3)]
		if o.Context = 160; rng.IntN(2) == 0 {
			o.Blocks = 5
		}
		e := byHand(t, o)
		e.runner.Lead(func(l *pool.Leader) {
			var jobs []*job
			for left := requests; len(left) > 0; {
				act := e.driver.Next()
				if act == nil || rng.IntN(3) == 0 { // in mid-flight, too
					jobs = append(jobs, e.enter(t, left[0]))
					left = left[1:]
				}
				if act != nil {
					e.run(l, act)
				}
			}
			for e.forward(l) != nil {
			}
			for i, j := range jobs {
				steps, end := j.out.take()
				if end == nil || end.err != nil || len(steps) != len(want[i]) {
					t.Fatalf("seed %d, %s: request %d has %d tokens, ended by %+v", seed, o.Policy, i, len(steps), end)
				}
				for k, s := range steps {
					if w := want[i][k]; s.id != w.id || math.Float32bits(s.logprob) != math.Float32bits(w.logprob) {
						t.Fatalf("seed %d, %s: token %d of request %d is %d (%v), alone %d (%v)", seed, o.Policy, k, i,
							s.id, s.logprob, w.id, w.logprob)
					}
				}
			}
		})
		checkIdle(t, e)
	}
}

// TestQuantaEnd checks that a proactive prompt runs in quanta next to a reactive request that
// decodes, that each quantum ends at an op, and that both requests complete while the times of
// steps are learned.
func TestQuantaEnd(t *testing.T) {
	o := tinyOptions(t)
	o.Quantum, o.Bound = 0.5, 20*time.Microsecond
	e := byHand(t, o)
	believed := e.Costs().Forward(1, loadOfRows(2))
	seed := uint64(0)
	quanta := func() bool { // a quantum lasts as long as predicted, which a busy machine may exceed by far
		e.runner.Lead(func(l *pool.Leader) { quantaNext(t, e, l, seed) })
		seed += 2
		st := e.Stats().Scheduler
		return st.Quanta > 0 && st.Stops > 0
	}
	if !soon(t, quanta) {
		t.Errorf("%+v", e.Stats().Scheduler)
	}
	if learned := e.Costs().Forward(1, loadOfRows(2)); learned == believed {
		t.Errorf("a step was believed to take %s, and still is", believed)
	}
	checkIdle(t, e)
}

// quantaNext runs a proactive prompt next to a reactive request.
func quantaNext(t *testing.T, e *Engine, l *pool.Leader, seed uint64) {
	quick := e.enter(t, api.Request{Prompt: tinyPrompt(seed, 20), MaxTokens: 200, IgnoreEOS: true})
	for range 20 {
		e.forward(l)
	}
	slow := e.enter(t, api.Request{Prompt: tinyPrompt(seed+1, 120), MaxTokens: 4, IgnoreEOS: true,
		Class: sched.Proactive})
	for act := e.forward(l); act != nil; act = e.forward(l) {
		if act.ID == slow.id && act.Kind != sched.Decode && e.jobs[quick.id] != nil && act.Quantum <= 0 {
			t.Errorf("a prefill next to a reactive request has no quantum: %+v", act)
		}
	}
}

// TestUnknownPolicy checks that New refuses an unknown policy.
func TestUnknownPolicy(t *testing.T) {
	o := tinyOptions(t)
	o.Policy = "beauty"
	if e, err := newEngine(t.Context(), o); err == nil {
		e.Close()
		t.Error("the policy beauty is not refused")
	}
}

// TestAnyProfilePredicts checks that ops are predicted without ceilings, and without a profile.
func TestAnyProfilePredicts(t *testing.T) {
	o := tinyOptions(t)
	r, err := forward.Open(t.Context(), o.withBlocks(4))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	table := forecast.NewCosts(r.Model, o.Plan, nil)
	for _, p := range phase.All {
		small, large := table.Forward(p, loadOfRows(1)), table.Forward(p, loadOfRows(500))
		if small <= 0 || large <= small || table.Ops() != r.Ops() {
			t.Errorf("%s: a row takes %s, 500 take %s", p, small, large)
		}
	}
}

// loadOfRows is a decode batch of so many sequences.
func loadOfRows(n int) cost.Load { return cost.Load{Rows: n, Heads: n, Positions: 50 * n} }
