package calibrate

import (
	"context"
	"math/rand/v2"
	"time"
)

// trial is one thing that is sampled again and again: a pair of PUs, one PU, a set of PUs. take
// returns up to two values; samples of a disturbed machine may be NaN.
type trial struct {
	workers []int
	a, b    []float64
}

const (
	mostSamples = 51
	fewTrials   = 64 // so few get one sample each even when the time is up, within as much time again
)

// rounds takes one sample of each trial after the other, in an order that changes, so that a
// disturbance of the machine does not look like structure of neighbors. With few trials a first
// round warms up. It ends when every trial has its samples, when the time is up, or with ctx's
// error.
func (f *full) rounds(ctx context.Context, trials []*trial, until time.Time, take func(*trial) error) error {
	few := len(trials) <= fewTrials
	late := until.Add(max(0, time.Until(until))) // nothing goes on after that
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
