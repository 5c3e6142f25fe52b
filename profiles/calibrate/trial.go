package calibrate

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// trial is a set of workers that is sampled repeatedly: one PU, a pair, or a set. A sample has up
// to two values; on a disturbed machine they may be NaN.
type trial struct {
	workers []int
	a, b    []float64
}

const (
	maxSamples = 51
	fewTrials  = 64 // up to this number, each trial gets one sample even if that doubles the time
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

// full is a full probe in progress.
type full struct {
	*bench
	memory   *memory
	tell     func(seconds float64, figure string)
	samples  int           // maximum per trial
	patience time.Duration // time after which a round trip is abandoned
	matrices []profiles.Matrix
	sets     []profiles.SetFigure
	solo     map[int][]float64 // multiply-add rates of single PUs, by PU
}

func newFull(workers *pool.Pool, p *profiles.Profile) *full {
	return &full{bench: newBench(workers, p), tell: func(float64, string) {}, samples: maxSamples, patience: lostAfter,
		solo: map[int][]float64{}}
}

// errUnmeasured ends a stage that cannot be measured on this machine. Its text becomes a note.
var errUnmeasured = errors.New("not measured")

// Sizes of a sample of round trips.
const (
	bursts       = 5                     // per sample, which is their median
	burstTrips   = 100                   // round trips per burst
	lostAfter    = 20 * time.Millisecond // default of full.patience
	spinsPerTime = 1 << 12               // reads of the line between two reads of the clock
)
