package arms

import (
	"context"
	"errors"
	"fmt"

	"sandwich/runtime/phase"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
)

// AddTests adds the tests of the given phases that fit in the time until a part of the budget: few
// and small ones if small is set. The error is ErrUndecided if there is no time for any.
func (r *Race) AddTests(ctx context.Context, small bool, end float64, phases ...phase.Phase) error {
	left := r.Run.Until(end).Seconds() / float64(len(phases)*len(r.Arms)*(MinRounds+1))
	for _, ph := range phases {
		add := r.addDecode
		if ph == phase.Prefill {
			add = r.addPrefill
		}
		err := add(ctx, small, left)
		if errors.Is(err, run.ErrNoTime) {
			return ErrUndecided
		}
		if err != nil {
			return err
		}
	}
	rig.Even(r.Tests)
	return nil
}

// calibrate sets the number of forwards per sample of a test from one forward under the first arm.
func (r *Race) calibrate(ctx context.Context, x rig.Test) (rig.Test, error) {
	x.Times = 1
	a := r.Arms[0]
	seconds, _, err := r.Run.Recorder.Forward(fmt.Sprintf("first forward %s by %s", x.Name(), a.key(x.Phase)),
		func() (float64, error) {
			if _, err := r.sample(ctx, a, x); err != nil {
				return 0, err
			}
			return r.sample(ctx, a, x)
		})
	if err != nil {
		return x, err
	}
	return x.Timed(seconds), nil
}

// shortPrompt is the number of tokens of the prompt from which the duration of others is estimated.
const shortPrompt = 32

// addPrefill adds the prefill tests: few and small ones when sets are chosen. It estimates
// durations from a short forward and shortens or omits tests that do not fit in left, the seconds
// available for one forward of each test.
func (r *Race) addPrefill(ctx context.Context, small bool, left float64) error {
	def := r.Arms[0].On.Plan
	short, err := r.calibrate(ctx, rig.Test{Phase: phase.Prefill, N: min(def.Chunk, shortPrompt)})
	if err != nil {
		return err
	}
	n := def.Chunk
	if small {
		n = min(n, 128)
	}
	perToken := short.Seconds / float64(short.N)
	for n > 2*shortPrompt && float64(n+64)*perToken > left {
		n /= 2
	}
	r.addPrompt(n, perToken)
	if !small && n > 64 {
		r.addPrompt(64, perToken)
	}
	return nil
}

func (r *Race) addPrompt(n int, perToken float64) {
	r.Tests = append(r.Tests, rig.Test{Phase: phase.Prefill, N: n}.Timed(perToken*float64(n)))
}

// addDecode adds the decode tests in the same way as addPrefill.
func (r *Race) addDecode(ctx context.Context, small bool, left float64) error {
	batches := []int{1, 4, 16}
	if small {
		batches = []int{1, 16}
	}
	last := 0
	for _, n := range batches {
		if n = min(n, r.Arms[0].On.Plan.BatchMax); n == last {
			break
		}
		x, err := r.calibrate(ctx, rig.Test{Phase: phase.Decode, N: n})
		if err != nil {
			return err
		}
		if left -= x.Seconds; left < 0 && last > 0 {
			break
		}
		r.Tests, last = append(r.Tests, x), n
	}
	return nil
}
