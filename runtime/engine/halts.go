package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"sandwich/runtime/engine/forward"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

// Halts are halts of prompts on a device at random times.
type Halts struct {
	Latencies []time.Duration // from the request of a halt to the end of the last segment
	Segment   time.Duration   // mean duration of a segment
	Segments  int             // of a prompt that is not halted
}

// haltGate halts a forward when it is asked to, and counts its segments.
type haltGate struct {
	asked    atomic.Int64 // nanoseconds after began; 0: no halt
	began    time.Time
	segments int
}

// Passed implements exec.Gate.
func (g *haltGate) Passed(int) (halt bool) {
	g.segments++
	return g.asked.Load() != 0
}

// ask asks for a halt.
func (g *haltGate) ask() { g.asked.Store(max(1, int64(time.Since(g.began)))) }

// MeasureHalts runs a prompt of so many tokens on the device n times, with segments of at most the
// bound by prediction, and halts each at a random time. It must run inside r.Lead. seed draws the
// times.
func (a *Accelerator) MeasureHalts(ctx context.Context, r *forward.Runner, l *pool.Leader, tokens, n int,
	bound time.Duration, seed uint64) (h Halts, err error) {
	if !a.Runs(phase.Prefill) {
		return h, errors.New("the device does not run prefill; give --device-phases prefill")
	}
	s := NewSequence(r, l)
	defer s.Reset()
	if err := s.prepare(measuredPrompt(r, tokens), phase.Prefill, LastLogits); err != nil {
		return h, err
	}
	var whole haltGate
	for range 2 { // the first one predicts the segments of the second
		whole = haltGate{began: time.Now()}
		if _, err := a.run(ctx, s, bound, &whole); err != nil {
			return h, err
		}
	}
	took := time.Since(whole.began)
	h.Segments, h.Segment = whole.segments, took/time.Duration(whole.segments)
	rng := rand.New(rand.NewPCG(seed, 1))
	for tries := 0; len(h.Latencies) < n; tries++ {
		if tries >= 4*n+16 {
			return h, fmt.Errorf("only %d of %d prompts halted, the others had ended; use longer prompts",
				len(h.Latencies), n)
		}
		g := &haltGate{began: time.Now()}
		timer := time.AfterFunc(time.Duration(rng.Float64()*float64(took)), g.ask)
		halted, err := a.run(ctx, s, bound, g)
		timer.Stop()
		if err != nil {
			return h, err
		}
		if halted {
			h.Latencies = append(h.Latencies, time.Since(g.began)-time.Duration(g.asked.Load()))
		}
	}
	return h, nil
}

// run runs the prepared forward of a sequence on the device from its first op on and reports
// whether it was halted.
func (a *Accelerator) run(ctx context.Context, s *Sequence, bound time.Duration, g *haltGate) (halted bool, err error) {
	next, err := a.on.Forward(ctx, 0, &s.batch, 0, bound, g, coresOf(a.r, s.l))
	return next < len(a.r.Model.Ops), err
}
