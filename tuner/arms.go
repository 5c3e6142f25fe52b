package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
)

// Bounds of the rounds in which arms are raced.
const (
	minRounds = 3
	maxRounds = 15
)

// raceArm is an arm of a race on this machine, with its result.
type raceArm struct {
	race.Contender
	race.Standing
	on       *partition
	phases   [2]*plans.Phase // what runs in each phase; nil for a phase that the race does not test
	sets     [2]ranking.ActiveSet
	unpinned bool
}

// key returns the journal key of what runs in a phase.
func (c *raceArm) key(phase int) string {
	name := c.Name
	if c.Partition != "" {
		name += " in " + c.Partition
	}
	return fmt.Sprintf("%s, %s", name, profiles.Digest(c.phases[phase]))
}

// raceTest is one kind of forward that arms are compared on: a prompt of n tokens or one step of n
// sequences. A sample runs times forwards.
type raceTest struct {
	phase, n, times int     // times: forwards per sample
	seconds         float64 // approximate duration of a forward
}

func (x raceTest) name() string {
	if x.phase == prefill {
		return fmt.Sprintf("pp%d", x.n)
	}
	return fmt.Sprintf("tg batch %d", x.n)
}

// raceArms implements Runner with configurations of any partition on the runtime that serves. A
// partition is loaded when the journal lacks one of its samples.
type raceArms struct {
	*tuning
	stage string
	limit float64 // part of the budget at which the race stops
	arms  []*raceArm
	tests []raceTest
}

func (f *raceArms) add(name string, on *partition, phases [2]*plans.Phase, unpinned, stays bool) *raceArm {
	c := &raceArm{Contender: race.Contender{Name: name, Partition: on.name(), Stays: stays}, on: on, phases: phases,
		unpinned: unpinned}
	f.arms = append(f.arms, c)
	return c
}

// race samples the arms interleaved until a part of the budget is used up. It runs the minimum
// number of rounds unless the limit of the race comes first.
func (f *raceArms) race(end float64, keep int) error {
	f.say(f.stage, "", true)
	o := race.Options{Tests: len(f.tests), Least: minRounds, Most: maxRounds, Budget: f.until(end).Seconds(),
		Limit: f.until(f.limit).Seconds(), Keep: keep, Seed: f.o.Seed,
		Said: func(arm, test int, seconds float64) {
			x := f.tests[test]
			f.say(f.stage, fmt.Sprintf("%s: %s, %s %.4g tokens/s", phaseNames[x.phase], f.arms[arm].Name, x.name(),
				float64(x.n)/seconds), false)
		}}
	for _, a := range f.arms {
		o.Arms = append(o.Arms, a.Contender)
	}
	out, err := race.Run(f.ctx, f, o)
	if err != nil && !errors.Is(err, errNoTime) {
		return err
	}
	undecided := false
	for i, a := range f.arms {
		a.Standing = out[i]
		switch {
		case len(a.Laps) > 0 || a.Lost != "":
		case a.on == f.home:
			undecided = true
		default:
			a.Lost = "the budget was over before it ran"
		}
	}
	if undecided {
		return race.ErrUndecided
	}
	return nil
}

// Open implements Runner.
func (f *raceArms) Open(context.Context, string) error { return nil }

// Close implements Runner. It leaves the partition open, because the next stage may need it, until
// another partition replaces it.
func (f *raceArms) Close(string) {}

// Sample implements Runner. It takes the samples of an earlier run from the journal.
func (f *raceArms) Sample(_ context.Context, arm, test int) (race.Timing, error) {
	a, x := f.arms[arm], f.tests[test]
	seconds, cost, err := f.rec.Forward(fmt.Sprintf("%s forward %s x %d by %s", phaseNames[x.phase], x.name(), x.times,
		a.key(x.phase)),
		func() (float64, error) { return f.run(a, x) })
	return race.Timing{Seconds: seconds, Cost: cost}, err
}

var errNoRig = errors.New("whole forwards cannot be run")

// run takes one sample of a test, after the arm has run once to warm up.
func (f *raceArms) run(c *raceArm, x raceTest) (seconds float64, err error) {
	if err := f.open(c.on); err != nil {
		return 0, err
	}
	if c.on.rig == nil {
		return 0, errNoRig
	}
	batch, end := c.on.rig.test(x), time.Now().Add(f.until(f.limit))
	c.on.workers.Pool.Lead(func(l *pool.Leader) {
		a := c.on.rig.arms[c.key(x.phase)]
		if a == nil {
			if a, err = c.on.rig.newArm(c.key(x.phase), c.phases[x.phase], c.unpinned); err != nil {
				return
			}
			if _, err = c.on.rig.sample(l, a, batch, 1, end); err != nil {
				return
			}
		}
		seconds, err = c.on.rig.sample(l, a, batch, x.times, end)
	})
	return seconds, err
}

// calibrate sets the number of forwards per sample of a test from one forward under the first arm.
func (f *raceArms) calibrate(x raceTest) (out raceTest, seconds float64, err error) {
	x.times = 1
	a := f.arms[0]
	seconds, _, err = f.rec.Forward(fmt.Sprintf("first forward %s by %s", x.name(), a.key(x.phase)),
		func() (float64, error) {
			if _, err := f.run(a, x); err != nil {
				return 0, err
			}
			return f.run(a, x)
		})
	x.times, x.seconds = repeats(seconds, sampleSeconds), seconds
	return x, seconds, err
}

// shortPrompt is the number of tokens of the prompt from which the duration of others is estimated.
const shortPrompt = 32

// addPrefill adds the prefill tests: few and small ones when sets are chosen. It estimates
// durations from a short forward and shortens or omits tests that do not fit in left, the seconds
// available for one forward of each test.
func (f *raceArms) addPrefill(small bool, left float64) error {
	def := f.arms[0].on.def
	short, seconds, err := f.calibrate(raceTest{phase: prefill, n: min(def.Chunk, shortPrompt)})
	if err != nil {
		return err
	}
	n := def.Chunk
	if small {
		n = min(n, 128)
	}
	perToken := seconds / float64(short.n)
	for n > 2*shortPrompt && float64(n+64)*perToken > left {
		n /= 2
	}
	f.addPrompt(n, perToken)
	if !small && n > 64 {
		f.addPrompt(64, perToken)
	}
	return nil
}

func (f *raceArms) addPrompt(n int, perToken float64) {
	s := perToken * float64(n)
	f.tests = append(f.tests, raceTest{prefill, n, repeats(s, sampleSeconds), s})
}

// addDecode adds the decode tests in the same way as addPrefill.
func (f *raceArms) addDecode(small bool, left float64) error {
	batches := []int{1, 4, 16}
	if small {
		batches = []int{1, 16}
	}
	last := 0
	for _, n := range batches {
		if n = min(n, f.arms[0].on.def.BatchMax); n == last {
			break
		}
		x, seconds, err := f.calibrate(raceTest{phase: decode, n: n})
		if err != nil {
			return err
		}
		if left -= seconds; left < 0 && last > 0 {
			break
		}
		f.tests, last = append(f.tests, x), n
	}
	return nil
}

// even lengthens the samples of short forwards when other tests take long: a round costs little
// more, and samples of 20 ms between prompts of a second are too noisy.
func (f *raceArms) even() {
	longest := 0.0
	for _, x := range f.tests {
		longest = max(longest, x.seconds*float64(x.times))
	}
	for i := range f.tests {
		x := &f.tests[i]
		x.times = repeats(x.seconds, max(sampleSeconds, evenShare*longest))
	}
}

// addTests adds the tests of the given phases that fit in the time until a part of the budget.
func (f *raceArms) addTests(small bool, end float64, phases ...int) error {
	left := f.until(end).Seconds() / float64(len(phases)*len(f.arms)*(minRounds+1))
	for _, phase := range phases {
		add := f.addDecode
		if phase == prefill {
			add = f.addPrefill
		}
		err := add(small, left)
		if errors.Is(err, errNoTime) {
			return race.ErrUndecided
		}
		if err != nil {
			return err
		}
	}
	f.even()
	return nil
}

// evidenceOf returns the samples of an arm in the tests of a phase, under the given name.
func (f *raceArms) evidenceOf(c *raceArm, phase int, name string) (out []evidence.Arm) {
	for k, x := range f.tests {
		if x.phase != phase {
			continue
		}
		a := evidence.Arm{Name: name, Test: x.name(), Unit: "tokens/s"}
		if f.part != "" {
			a.Test += ", " + f.part
		}
		inOrder := true
		for i, lap := range c.Laps {
			a.Samples = append(a.Samples, num.Significant(float64(x.n)/lap.Seconds[k]))
			a.Rounds = append(a.Rounds, lap.Round)
			inOrder = inOrder && lap.Round == i
		}
		if inOrder {
			a.Rounds = nil
		}
		out = append(out, a)
	}
	return out
}
