package engine

import (
	"context"
	"fmt"
	"time"

	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

// DeviceTimes has the measured time of a forward of each phase: a chunk of a prompt, and one token.
type DeviceTimes struct {
	Rows   int // of the chunk
	Cores  [phase.Count]time.Duration
	Device [phase.Count]time.Duration
}

// String returns the rates of both sides in tokens/s.
func (t DeviceTimes) String() string {
	rate := func(rows int, d time.Duration) float64 { return float64(rows) / max(d.Seconds(), 1e-9) }
	return fmt.Sprintf("prefill %.1f tokens/s on the device and %.1f on the cores, decode %.1f and %.1f",
		rate(t.Rows, t.Device[phase.Prefill]), rate(t.Rows, t.Cores[phase.Prefill]),
		rate(1, t.Device[phase.Decode]), rate(1, t.Cores[phase.Decode]))
}

// faster returns the phases that the device runs faster than the cores.
func (t DeviceTimes) faster() (list []phase.Phase) {
	for _, p := range phase.All {
		if t.Device[p] < t.Cores[p] {
			list = append(list, p)
		}
	}
	return list
}

// Forwards that are measured: of each, the least time of a few counts, after one that is not
// counted. measureLimit bounds the repetitions on slow machines.
const (
	measuredRows = 256
	measureLimit = 2 * time.Second
	measureReps  = 3
)

// measureDevice times a forward of each phase on the cores and on the device. Nothing else may run.
func measureDevice(ctx context.Context, r *Runner, on *offload.Runner, context int) (t DeviceTimes, err error) {
	t.Rows = max(1, min(measuredRows, r.Plan.Chunk, context-2))
	tokens := make([]int32, t.Rows)
	for i := range tokens {
		tokens[i] = int32((i*7919 + 1) % r.Model.Dims.Vocab)
	}
	r.Lead(func(l *pool.Leader) {
		s := NewSequence(r, l)
		defer s.Reset()
		for _, p := range phase.All {
			if p == phase.Decode {
				if err = s.Feed(tokens, t.Rows, NoLogits, nil); err != nil {
					return
				}
				on.CoresWrite(&s.batch) // the device copies it in the first forward, which is not counted
			}
			batch := tokens
			if p == phase.Decode {
				batch = tokens[:1]
			}
			if t.Cores[p], err = least(func() error { return s.measured(ctx, batch, p, nil) }); err != nil {
				return
			}
			if t.Device[p], err = least(func() error { return s.measured(ctx, batch, p, on) }); err != nil {
				return
			}
		}
	})
	return t, err
}

// least returns the least time of f.
func least(f func() error) (best time.Duration, err error) {
	var all time.Duration
	for i := range measureReps + 1 {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took := time.Since(began)
		if i == 0 && took < measureLimit {
			continue // it warms caches up
		}
		if best == 0 || took < best {
			best = took
		}
		if all += took; all > measureLimit {
			break
		}
	}
	return best, nil
}

// measured runs a forward of the next tokens, on the device unless it is nil, without advancing.
func (s *Sequence) measured(ctx context.Context, tokens []int32, p phase.Phase, on *offload.Runner) error {
	if err := s.prepare(tokens, p == phase.Prefill, false, true); err != nil {
		return err
	}
	if on == nil {
		_, err := s.r.Forward(s.l, &s.batch, 0, nil)
		return err
	}
	on.CoresWrite(&s.batch)
	_, err := on.Forward(ctx, 0, &s.batch, 0, 0, nil)
	return err
}
