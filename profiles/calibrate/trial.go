package calibrate

import (
	"context"
	"math/rand/v2"
	"time"
)

// trial is a set of workers that is sampled repeatedly: one PU, a pair, or a set. A sample has up
// to two values; on a disturbed machine they may be NaN.
type trial struct {
	workers []int
	a, b    []float64
}

const (
	mostSamples = 51
	fewTrials   = 64 // up to this number, each trial gets one sample even if that doubles the time
)

// rounds takes one sample of each trial per round, in random order, so that a disturbance of the
// machine does not look like structure. With few trials the first round warms up and is discarded.
// It ends when every trial has its samples, at the time until, or with ctx's error.
func (f *full) rounds(ctx context.Context, trials []*trial, until time.Time, take func(*trial) error) error {
	few := len(trials) <= fewTrials
	late := until.Add(max(0, time.Until(until))) // hard limit
	for round := range f.samples {
		order := rand.New(rand.NewPCG(1, uint64(round))).Perm(len(trials))
		for _, i := range order {
			if err := ctx.Err(); err != nil {
				return err
			}
			if now := time.Now(); now.After(until) && (!few || round > 1 || now.After(late)) {
				return nil
			}
			f.tell(0, "")
			if err := take(trials[i]); err != nil {
				return err
			}
		}
		if few && round == 0 {
			for _, t := range trials {
				t.a, t.b = nil, nil
			}
		}
	}
	return nil
}
