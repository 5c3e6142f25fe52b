package tuner

import (
	"context"
	"fmt"

	"sandwich/runtime/pool"
)

// Rounds in which arms are raced.
const (
	minRounds = 3
	maxRounds = 15
)

// raceStage is a race within a tune: what it is called, for what, the part of the budget at which
// it ends, and RaceOptions.Keep.
type raceStage struct {
	name, what string
	end        float64
	keep       int
}

// race has the arms of one phase raced on the rig, whose copy of the weights they share, and leaves
// in each how it came out. It ends with the stage's part of the budget; minRounds are run unless
// the whole budget is used up.
func (t *tuning) race(l *pool.Leader, arms []*arm, tests []*test, s raceStage) error {
	t.say(s.name, s.what, true)
	o := RaceOptions{Tests: len(tests), Least: minRounds, Most: maxRounds, Budget: t.until(s.end).Seconds(),
		Limit: t.until(1).Seconds(), Keep: s.keep, Seed: t.o.Seed,
		Said: func(arm, test int, seconds float64) {
			t.say(s.name, fmt.Sprintf("%s, %s: %s %.4g tokens/s", s.what, arms[arm].name, tests[test].name,
				float64(tests[test].tokens)/seconds), false)
		}}
	for _, a := range arms {
		o.Arms = append(o.Arms, Contender{Name: a.name, Stays: a.stays})
	}
	out, err := Race(t.ctx, &rigRunner{t, l, arms, tests, s.what}, o)
	if err != nil {
		return err
	}
	for i, a := range arms {
		if a.Standing = out[i]; len(a.Laps) == 0 {
			return errUndecided
		}
	}
	return nil
}

// rigRunner implements Runner with the arms of a rig.
type rigRunner struct {
	t     *tuning
	l     *pool.Leader
	arms  []*arm
	tests []*test
	what  string
}

func (r *rigRunner) Open(context.Context, string) error { return nil }
func (r *rigRunner) Close(string)                       {}

// Sample implements Runner; what an earlier run finished comes from the journal.
func (r *rigRunner) Sample(_ context.Context, arm, test int) (Timing, error) {
	a, x := r.arms[arm], r.tests[test]
	return r.t.rec.forward(fmt.Sprintf("%s forward %s x %d by %s", r.what, x.name, x.times, a.key),
		func() (float64, error) {
			if !a.warm {
				a.warm = true
				if _, err := r.t.rig.sample(r.l, a, r.tests[len(r.tests)-1]); err != nil {
					return 0, err
				}
			}
			return r.t.rig.sample(r.l, a, x)
		})
}

// calibrate runs a test once to warm up and sets how many forwards make a sample.
func (t *tuning) calibrate(l *pool.Leader, a *arm, x *test) (seconds float64, err error) {
	x.times = 1
	s, err := t.rec.forward(fmt.Sprintf("first forward %s by %s", x.name, a.key), func() (float64, error) {
		if _, err := t.rig.sample(l, a, x); err != nil {
			return 0, err
		}
		return t.rig.sample(l, a, x)
	})
	x.times = repeats(s.Seconds)
	return s.Seconds, err
}

func closeArms(arms []*arm) {
	for _, a := range arms {
		a.executor.Close()
	}
}
