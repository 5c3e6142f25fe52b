package plan

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/plans/gate"
)

// fakeRacer is a machine whose candidate has a known speed.
type fakeRacer struct {
	rng              *rand.Rand
	noise, candidate float64
}

func (r *fakeRacer) Warm(context.Context, gate.Case) error { return nil }

func (r *fakeRacer) Sample(_ context.Context, side int, _ gate.Case) (float64, error) {
	rate := 100 * math.Exp(r.noise*r.rng.NormFloat64())
	if side == 1 {
		rate *= r.candidate
	}
	return rate, nil
}

// TestRaceEnds checks that a race on a quiet machine ends long before the budget, and on a noisy
// one at the end of the budget.
func TestRaceEnds(t *testing.T) {
	cases := []gate.Case{{Prefill: true, Rows: 512}, {Rows: 1}}
	for name, c := range map[string]struct {
		noise, candidate float64
		budget           time.Duration
		exit             int
	}{
		"equal":  {0.01, 1, time.Hour, exit.OK},
		"slower": {0.01, 0.94, time.Hour, exit.Failed},
		"faster": {0.01, 1.06, time.Hour, exit.OK},
		"wild":   {0.5, 0.94, 50 * time.Millisecond, exit.Noisy},
	} {
		f := checkFlags{maxRegress: 0.03, ceiling: gate.DefaultCeiling, budget: c.budget, began: time.Now()}
		arms := &fakeRacer{rand.New(rand.NewPCG(3, 4)), c.noise, c.candidate}
		rows, err := f.race(t.Context(), arms, cases)
		if err != nil {
			t.Fatal(err)
		}
		v := gate.Decide(nil, gate.Judge(rows, gate.Options{MaxRegress: 0.03, Ceiling: gate.DefaultCeiling,
			Interleaved: true}), false)
		if v.Exit != c.exit {
			t.Errorf("%s: exit %d after %d rounds (%s), want %d", name, v.Exit, len(rows[0].Candidate), v.Text, c.exit)
		}
	}
}
