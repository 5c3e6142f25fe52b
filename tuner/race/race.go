// Package race measures arms interleaved and stops those that are slower, by successive halving. It
// knows an arm by its index only; see tuner/arms for what an arm runs.
package race

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
)

// Contender is one arm of a race: a whole configuration.
type Contender struct {
	Name      string
	Partition string // arms of one partition share one copy of the weights
	Stays     bool   // measured to the end, even if slow
}

// Runner runs the arms of a race. An arm is identified by its index among the contenders.
type Runner interface {
	// Sample runs a test under an arm that the runner has warmed up.
	Sample(ctx context.Context, arm, test int) (Timing, error)
}

// Timing is the duration of one forward of a sample, and the cost of the whole sample, which counts
// against the budget. Both are in seconds.
type Timing struct{ Seconds, Cost float64 }

// Joined are arms that join a race, before the arm with index At. Cost is the time in seconds that
// finding them took, which counts against the budget.
type Joined struct {
	At   int
	Arms []Contender
	Cost float64
}

// Options configure Run. Keep, Enough, Look, Seed, Said and Join are optional.
type Options struct {
	Arms   []Contender // the first is the reference, which runs with every other arm
	Tests  int
	Least  int                                 // minimum rounds of each arm before the budget ends the race
	Most   int                                 // maximum rounds of an arm
	Budget float64                             // seconds of samples
	Limit  float64                             // seconds after which the race ends even before Least rounds
	Keep   int                                 // arms that halving keeps, in addition to those that stay; 0: 2
	Enough func(out []Standing, test int) bool // reports whether a test needs no more samples; nil: never
	Look   int                                 // rounds between calls of Enough after Least; 0: 1
	Seed   uint64                              // of the order of the arms in a round
	Said   func(arm, test int, seconds float64)
	// Join returns arms of other partitions than the reference's. Run calls it once, after the
	// minimum of rounds of the reference's partition, so that what it costs cannot leave these
	// undecided.
	Join func(ctx context.Context) (Joined, error)
}

// Standing is the result of an arm in a race.
type Standing struct {
	Laps []Lap
	Lost string // why it stopped early; "" for an arm that took part to the end
}

// Lap is one round of an arm: its samples by test, 0 for a test that was closed. Samples of one
// round are interleaved.
type Lap struct {
	Round   int
	Seconds []float64
}

// Samples returns the seconds of a test, round by round, until the test was closed.
func (s *Standing) Samples(test int) (out []float64) {
	for _, lap := range s.Laps {
		if lap.Seconds[test] > 0 {
			out = append(out, lap.Seconds[test])
		}
	}
	return out
}

// Absent is the error of a partition other than the reference's that cannot run. Its arms leave the
// race.
type Absent struct{ Why string }

// Error returns the reason.
func (a *Absent) Error() string { return a.Why }

// Run measures arms interleaved until the best is known or the budget is over. It uses successive
// halving (Jamieson and Talwalkar 2016, section 2). Arms are compared by the gains of rounds that
// both ran in, so that drift of the machine affects both sides. Each stage takes as many rounds as
// all stages before it. After a stage, arms leave whose gain is significantly below the best arm's,
// and then the slower half of the others, but Keep arms remain. In a stage, the samples of a
// partition follow each other, so that memory must hold only this partition and the reference's.
// Run uses no clock other than the costs of the samples; equal samples give equal races.
func Run(ctx context.Context, run Runner, o Options) ([]Standing, error) {
	if o.Keep == 0 {
		o.Keep = 2
	}
	r := &race{Options: o, run: run, rng: rand.New(rand.NewPCG(o.Seed, 12)), out: make([]Standing, len(o.Arms)),
		closed: make([]bool, o.Tests), orders: make([][]int, o.Tests)}
	for target := min(o.Least, o.Most); ; target = min(2*target, o.Most) {
		if err := r.visit(ctx, o.Arms[0].Partition, target); err != nil {
			return r.out, err
		}
		if err := r.join(ctx); err != nil {
			return r.out, err
		}
		for _, p := range r.partitions()[1:] {
			if err := r.visit(ctx, p, target); err != nil {
				return r.out, err
			}
		}
		if !r.over {
			r.settle()
		}
		if target == o.Most || r.over || !r.open() {
			return r.out, nil
		}
	}
}

// join adds the arms of Join, unless it was called before or the limit is reached.
func (r *race) join(ctx context.Context) error {
	if r.Join == nil || r.spent > r.Limit {
		return nil
	}
	j, err := r.Join(ctx)
	r.Join = nil
	r.spent += j.Cost
	r.Arms = slices.Insert(slices.Clone(r.Arms), j.At, j.Arms...)
	r.out = slices.Insert(r.out, j.At, make([]Standing, len(j.Arms))...)
	return err
}

// race is the state of one call of Run.
type race struct {
	Options
	run     Runner
	rng     *rand.Rand
	out     []Standing
	round   int
	spent   float64
	longest float64 // seconds of the longest round
	closed  []bool  // tests with enough samples
	orders  [][]int // order of the last round by test; the next round reverses it
	over    bool    // the budget ended the race, or all tests are closed
}

// partitions returns the partitions with a running arm, the reference's first.
func (r *race) partitions() (out []string) {
	for i, c := range r.Arms {
		if r.out[i].Lost == "" && !slices.Contains(out, c.Partition) {
			out = append(out, c.Partition)
		}
	}
	return out
}

// visit runs rounds of the arms of a partition until each has target laps.
func (r *race) visit(ctx context.Context, partition string, target int) error {
	arms, last := []int{0}, 0 // the reference runs with the arms of every partition
	for i, c := range r.Arms {
		if i > 0 && c.Partition == partition && r.out[i].Lost == "" {
			arms, last = append(arms, i), i
		}
	}
	for len(r.out[last].Laps) < target {
		laps := len(r.out[last].Laps)
		if laps >= r.Least && r.spent >= r.Budget || laps > 0 && r.spent+r.longest > r.Limit {
			r.over = true
			return nil
		}
		whole, err := r.lap(ctx, arms)
		if gone := (*Absent)(nil); errors.As(err, &gone) && partition != r.Arms[0].Partition {
			for _, i := range arms[1:] {
				r.out[i].Lost = gone.Error()
			}
			return nil
		}
		if err != nil || !whole {
			r.over = true
			return err
		}
		if r.look(laps + 1); r.over {
			return nil
		}
	}
	return nil
}

// look closes the tests that have enough samples after the given number of laps.
func (r *race) look(laps int) {
	if r.Enough == nil || laps < r.Least || laps%max(1, r.Look) != 0 {
		return
	}
	for test := range r.closed {
		r.closed[test] = r.closed[test] || r.Enough(r.out, test)
	}
	r.over = !slices.Contains(r.closed, false)
}

// lap runs one round. It reports whether the round was completed within the limit.
func (r *race) lap(ctx context.Context, arms []int) (whole bool, err error) {
	began := r.spent
	seconds := make([][]float64, len(arms))
	for test := range r.Tests {
		for _, k := range r.order(test, len(arms)) {
			if r.closed[test] {
				seconds[k] = append(seconds[k], 0)
				continue
			}
			if r.spent > r.Limit {
				return false, nil
			}
			t, err := r.run.Sample(ctx, arms[k], test)
			if err != nil {
				return false, err
			}
			r.spent += t.Cost
			seconds[k] = append(seconds[k], t.Seconds)
			if r.Said != nil {
				r.Said(arms[k], test, t.Seconds)
			}
		}
	}
	for k, i := range arms {
		r.out[i].Laps = append(r.out[i].Laps, Lap{r.round, seconds[k]})
	}
	r.round++
	r.longest = max(r.longest, r.spent-began)
	return true, nil
}

// order returns the order of the arms of a test in a round. It is random in one round and reversed
// in the next round of the same size, so that an arm runs early as often as late, and before
// another arm as often as after it.
func (r *race) order(test, arms int) []int {
	if last := r.orders[test]; len(last) == arms {
		r.orders[test] = nil
		slices.Reverse(last)
		return last
	}
	r.orders[test] = r.rng.Perm(arms)
	return r.orders[test]
}

// open reports whether the race is undecided: more than one arm may still win, or no arm may leave.
func (r *race) open() bool {
	challengers, alive := 0, 0
	for i, c := range r.Arms {
		if i == 0 || c.Stays {
			continue
		}
		challengers++
		if r.out[i].Lost == "" {
			alive++
		}
	}
	return challengers == 0 || alive > 0
}
