package tuner

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
)

// Contender is one arm of a race: a whole configuration.
type Contender struct {
	Name      string
	Partition string // arms of one partition run on one copy of the weights
	Stays     bool   // it is measured to the end, however slow
}

// Runner runs the arms of a race, each named by its place among the contenders.
type Runner interface {
	// Open says that arms of a partition follow; Race has at most two open.
	Open(ctx context.Context, partition string) error
	Close(partition string)
	// Sample runs a test under an arm, which the runner has warmed up.
	Sample(ctx context.Context, arm, test int) (Timing, error)
}

// Timing is what a sample took: one forward of it, and everything, which counts against the budget.
type Timing struct{ Seconds, Cost float64 }

// RaceOptions of Race. All are needed but Keep, Enough, Look, Seed and Said.
type RaceOptions struct {
	Arms   []Contender // the first is the reference: it runs beside every other arm
	Tests  int
	Least  int                                 // rounds of each arm before the budget ends the race
	Most   int                                 // rounds of an arm
	Budget float64                             // seconds of samples
	Limit  float64                             // seconds at which not even Least rounds are waited for
	Keep   int                                 // so many arms are left by halving, without those that stay; 0: 2
	Enough func(out []Standing, test int) bool // a test that needs no more samples; nil: none does
	Look   int                                 // Enough is asked every so many rounds after Least; 0: each
	Seed   uint64                              // of the order of the arms in a round
	Said   func(arm, test int, seconds float64)
}

// Standing is how an arm came out of a race.
type Standing struct {
	Laps []Lap
	Lost string // why it stopped early; "" for an arm that took part to the end
}

// Lap is one round of an arm, its samples by test, 0 for a test that had enough of them. Laps of
// one round were taken in turn.
type Lap struct {
	Round   int
	Seconds []float64
}

// Samples are the seconds of a test, round by round, until it had enough.
func (s *Standing) Samples(test int) (out []float64) {
	for _, lap := range s.Laps {
		if lap.Seconds[test] > 0 {
			out = append(out, lap.Seconds[test])
		}
	}
	return out
}

// errUndecided says that the budget was over before every arm had been sampled once.
var errUndecided = errors.New("the budget was over before the arms could be compared")

// absent says why a partition besides the reference's cannot run: its arms leave the race.
type absent struct{ why string }

func (a *absent) Error() string { return a.why }

// Race measures arms in turn until the best is known or the budget is over: successive halving
// (Jamieson and Talwalkar 2016, section 2) in which arms are compared by the gains of rounds that
// both ran in, so that a drift of the machine meets both sides. Each stage takes as many rounds as
// those before it together. After it, arms leave whose gain is surely below the best arm's, and the
// slower ones of more than twice Keep. One partition is open besides the reference's. Race reads no
// clock but the costs of the samples, and equal samples give equal races.
func Race(ctx context.Context, run Runner, o RaceOptions) ([]Standing, error) {
	if o.Keep == 0 {
		o.Keep = 2
	}
	r := &race{RaceOptions: o, run: run, rng: rand.New(rand.NewPCG(o.Seed, 12)), out: make([]Standing, len(o.Arms)),
		closed: make([]bool, o.Tests), orders: make([][]int, o.Tests)}
	home := o.Arms[0].Partition
	if err := run.Open(ctx, home); err != nil {
		return nil, err
	}
	defer run.Close(home)
	for target := min(o.Least, o.Most); ; target = min(2*target, o.Most) {
		for _, p := range r.partitions() {
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

// race is one Race under way.
type race struct {
	RaceOptions
	run     Runner
	rng     *rand.Rand
	out     []Standing
	round   int
	spent   float64
	longest float64 // round
	closed  []bool  // tests that had enough
	orders  [][]int // by test, that of the last round, where the next one turns it round
	over    bool    // the budget ended the race, or no test needs more
}

// partitions lists those with an arm that runs on, the reference's first.
func (r *race) partitions() (out []string) {
	for i, c := range r.Arms {
		if r.out[i].Lost == "" && !slices.Contains(out, c.Partition) {
			out = append(out, c.Partition)
		}
	}
	return out
}

// visit runs rounds of the arms of a partition until each has enough.
func (r *race) visit(ctx context.Context, partition string, target int) error {
	arms, waits := []int{0}, 0 // whose laps are counted
	for i, c := range r.Arms {
		if i > 0 && c.Partition == partition && r.out[i].Lost == "" {
			arms, waits = append(arms, i), i
		}
	}
	if partition != r.Arms[0].Partition {
		if err := r.run.Open(ctx, partition); err != nil {
			return err
		}
		defer r.run.Close(partition)
	}
	for len(r.out[waits].Laps) < target {
		laps := len(r.out[waits].Laps)
		if laps >= r.Least && r.spent >= r.Budget || laps > 0 && r.spent+r.longest > r.Limit {
			r.over = true
			return nil
		}
		whole, err := r.lap(ctx, arms)
		if gone := (*absent)(nil); errors.As(err, &gone) && partition != r.Arms[0].Partition {
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

// look closes the tests that have enough after so many laps.
func (r *race) look(laps int) {
	if r.Enough == nil || laps < r.Least || laps%max(1, r.Look) != 0 {
		return
	}
	for test := range r.closed {
		r.closed[test] = r.closed[test] || r.Enough(r.out, test)
	}
	r.over = !slices.Contains(r.closed, false)
}

// lap runs one round, which counts if the limit leaves it whole.
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

// order is that of the arms of a test in a round: drawn, and in the next round of so many the other
// way round, so that an arm comes early as often as late, and behind another one as before it.
func (r *race) order(test, arms int) []int {
	if last := r.orders[test]; len(last) == arms {
		r.orders[test] = nil
		slices.Reverse(last)
		return last
	}
	r.orders[test] = r.rng.Perm(arms)
	return r.orders[test]
}

// open says that there is something left to find out: an arm that may still win, or none that may
// leave.
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
