package race

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// track is a simulated machine: the duration of a forward by arm, with noise and a drift that
// affects all arms.
type track struct {
	arms   []Contender
	takes  func(arm, nth int) float64
	noise  float64
	drift  float64 // relative slowdown per second
	clock  float64
	rng    *rand.Rand
	nth    []int
	other  string         // the partition, not the reference's, that ran last
	visits map[string]int // how often a partition replaced another one
	log    []int
	fail   int // index of the sample that fails; 0: never
}

func newTrack(seed uint64, arms []Contender, takes func(arm, nth int) float64) *track {
	return &track{arms: arms, takes: takes, noise: 0.02, rng: rand.New(rand.NewPCG(seed, 7)), nth: make([]int,
		len(arms)), visits: map[string]int{}}
}

var errBroken = errors.New("broken")

func (k *track) Sample(_ context.Context, arm, test int) (Timing, error) {
	if p := k.arms[arm].Partition; p != k.arms[0].Partition && p != k.other {
		k.other = p
		k.visits[p]++
	}
	k.log = append(k.log, arm)
	if len(k.log) == k.fail {
		return Timing{}, errBroken
	}
	s := k.takes(arm, k.nth[arm]) * float64(1+test) * (1 + k.drift*k.clock) * math.Exp(k.noise*k.rng.NormFloat64())
	k.nth[arm]++
	k.clock += s
	return Timing{Seconds: s, Cost: s}, nil
}

// lineup returns a default, the default again, an unpinned arm, and challengers in partitions of
// two.
func lineup(challengers int) []Contender {
	arms := []Contender{{"default", "0", true}, {"default again", "0", true}, {"unpinned", "0", true}}
	for i := range challengers {
		arms = append(arms, Contender{fmt.Sprintf("challenger %d", i), fmt.Sprint((i + 1) / 2), false})
	}
	return arms
}

func raceOptions(arms []Contender) Options {
	return Options{Arms: arms, Tests: 2, Least: 3, Most: 24, Budget: 1e6, Limit: 1e6, Seed: 5}
}

// winnerOf returns the challenger with the largest gain that ran to the end, or 0 if all are slower
// than the default.
func winnerOf(out []Standing) (best int) {
	for i := range out {
		if i >= 3 && out[i].Lost == "" && out[i].GainOver(&out[0]).Median > out[best].GainOver(&out[0]).Median {
			best = i
		}
	}
	return best
}

// TestRaceFindsTheBest checks, under noise and on a machine that gets three times as slow, that the
// best arm wins, that the samples of a partition follow each other, and that arms that stay run to
// the end.
func TestRaceFindsTheBest(t *testing.T) {
	const n = 10
	found, wrong := 0, 0
	for seed := range uint64(40) {
		arms := lineup(n)
		best := 3 + int(seed)%n
		k := newTrack(seed, arms, func(arm, _ int) float64 {
			switch {
			case arm == 2:
				return 3
			case arm < 3:
				return 1
			case arm == best:
				return 0.9
			}
			return 0.95 + 0.03*float64((arm+best)%n)
		})
		k.drift = 0.003
		o := raceOptions(arms)
		out, err := Run(t.Context(), k, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := winnerOf(out); got == best {
			found++
		} else if k.takes(got, 0) > 0.96 {
			wrong++
		}
		const stages = 4 // of 3, 6, 12 and 24 rounds
		for p, n := range k.visits {
			if n > stages {
				t.Errorf("partition %s replaced another one %d times in %d stages", p, n, stages)
			}
		}
		longest := 0
		for i := range out[1:] { // the reference runs with every other arm
			longest = max(longest, len(out[1+i].Laps))
		}
		for i := range 3 {
			if out[i].Lost != "" || len(out[i].Laps) < longest {
				t.Errorf("seed %d: arm %q had %d of %d laps: %s", seed, arms[i].Name, len(out[i].Laps), longest,
					out[i].Lost)
			}
		}
		samples := 0
		for i := range out {
			samples += 2 * len(out[i].Laps)
		}
		if samples != len(k.log) {
			t.Errorf("%d samples in laps, %d taken", samples, len(k.log))
		}
		if all := 2 * len(arms) * o.Most; samples > all*3/4 {
			t.Errorf("seed %d: %d samples, %d without early stops", seed, samples, all)
		}
	}
	if found < 38 || wrong > 0 {
		t.Errorf("the best arm won %d of 40 races, and %d were won by an arm that is much slower", found, wrong)
	}
}

// TestRaceOfEqualArms checks that no equal arm beats the default by more than its repetition does.
func TestRaceOfEqualArms(t *testing.T) {
	beaten := 0
	for seed := range uint64(100) {
		arms := lineup(3)
		k := newTrack(seed, arms, func(int, int) float64 { return 1 })
		out, err := Run(t.Context(), k, raceOptions(arms))
		if err != nil {
			t.Fatal(err)
		}
		again := out[1].GainOver(&out[0])
		noise := max(math.Abs(again.Low), math.Abs(again.High))
		if w := winnerOf(out); w >= 3 && out[w].GainOver(&out[0]).Beats(noise) {
			beaten++
		}
	}
	if beaten > 5 {
		t.Errorf("an arm like the default beat it in %d of 100 races", beaten)
	}
}

// TestRaceMeetsALateSlowArm checks that an arm that is fastest at first and slow from its fourth
// round on does not win.
func TestRaceMeetsALateSlowArm(t *testing.T) {
	for seed := range uint64(20) {
		arms := lineup(3)
		k := newTrack(seed, arms, func(arm, nth int) float64 {
			switch {
			case arm == 3 && nth < 6: // three rounds of two tests
				return 0.85
			case arm == 3:
				return 1.3
			case arm == 4:
				return 0.95
			}
			return 1
		})
		out, err := Run(t.Context(), k, raceOptions(arms))
		if err != nil {
			t.Fatal(err)
		}
		if w := winnerOf(out); w != 4 {
			t.Errorf("seed %d: %q won; laps of the late one: %d, %s", seed, arms[w].Name, len(out[3].Laps), out[3].Lost)
		}
	}
}

func TestRaceKeepsItsBudget(t *testing.T) {
	arms := lineup(4)
	even := func(arm, _ int) float64 { return 1 + float64(arm%2)/50 }
	o := raceOptions(arms)
	o.Budget, o.Limit = 100, 120
	k := newTrack(1, arms, even)
	out, err := Run(t.Context(), k, o)
	if err != nil {
		t.Fatal(err)
	}
	if k.clock > o.Limit {
		t.Errorf("it took %.0f of %.0f s", k.clock, o.Limit)
	}
	for i := range out {
		if n := len(out[i].Laps); n < o.Least && k.clock < 80 {
			t.Errorf("arm %d has %d laps", i, n)
		}
	}
	o.Budget, o.Limit = 1, 30 // less than one round each
	k = newTrack(1, arms, even)
	if out, err = Run(t.Context(), k, o); err != nil || !slices.ContainsFunc(out, func(s Standing) bool {
		return len(s.Laps) == 0
	}) {
		t.Errorf("%+v, %v", out, err)
	}
	if k.clock > o.Limit+4 {
		t.Errorf("it took %.0f of %.0f s", k.clock, o.Limit)
	}
}

// TestRaceJoined checks that arms join after the minimum of rounds of the reference's partition,
// and that these rounds count even if finding the arms takes longer than the limit.
func TestRaceJoined(t *testing.T) {
	for _, cost := range []float64{1, 1e9} {
		k := newTrack(1, lineup(2), func(arm, _ int) float64 { return []float64{1, 1, 1, 0.5, 0.9, 1}[arm] })
		o := raceOptions(slices.Delete(slices.Clone(k.arms), 3, 4))
		calls := 0
		o.Join = func(context.Context) (Joined, error) {
			if calls++; len(k.log) != o.Least*o.Tests*3 {
				t.Errorf("Join was called after %d samples", len(k.log))
			}
			return Joined{At: 3, Arms: []Contender{{"late", "late", false}}, Cost: cost}, nil
		}
		k.arms = slices.Insert(slices.Clone(o.Arms), 3, Contender{"late", "late", false})
		out, err := Run(t.Context(), k, o)
		if err != nil || calls != 1 || len(out) != len(k.arms) || len(out[0].Laps) < o.Least {
			t.Fatalf("%d calls of Join, %d arms, %v", calls, len(out), err)
		}
		best, want := winnerOf(out), 3
		if cost > o.Limit {
			want = 0 // no time is left for the late arm
		}
		if best != want {
			t.Errorf("cost %g: arm %d wins, want %d", cost, best, want)
		}
		o.Join = func(context.Context) (Joined, error) { return Joined{}, errBroken }
		if _, err := Run(t.Context(), newTrack(1, o.Arms, func(int, int) float64 { return 1 }), o); !errors.Is(err,
			errBroken) {
			t.Errorf("the error of Join: %v", err)
		}
	}
}

// TestRaceIsDeterministic checks that equal samples give equal races, and that the order within a
// round depends on the seed.
func TestRaceIsDeterministic(t *testing.T) {
	arms := lineup(5)
	run := func(seed uint64) ([]Standing, []int) {
		k := newTrack(3, arms, func(arm, _ int) float64 { return 1 + float64(arm)/30 })
		o := raceOptions(arms)
		o.Seed = seed
		out, err := Run(t.Context(), k, o)
		if err != nil {
			t.Fatal(err)
		}
		return out, k.log
	}
	a, first := run(1)
	b, second := run(1)
	if !reflect.DeepEqual(a, b) || !slices.Equal(first, second) {
		t.Error("two races of one seed differ")
	}
	if _, third := run(2); slices.Equal(first, third) {
		t.Error("another seed runs the arms in the same order")
	}
}

// TestRaceOfThoseThatStay checks that a race without challengers runs all of its rounds, and that
// the error of a sample ends a race.
func TestRaceOfThoseThatStay(t *testing.T) {
	arms := lineup(0)
	out, err := Run(t.Context(), newTrack(1, arms, func(int, int) float64 { return 1 }), raceOptions(arms))
	if err != nil || len(out[2].Laps) != 24 {
		t.Errorf("%d laps, %v", len(out[2].Laps), err)
	}
	arms = lineup(4)
	k := newTrack(1, arms, func(int, int) float64 { return 1 })
	k.fail = 30
	if _, err := Run(t.Context(), k, raceOptions(arms)); !errors.Is(err, errBroken) || len(k.log) != 30 {
		t.Errorf("%v after %d samples", err, len(k.log))
	}
}

// TestRaceClosesTests checks that a test with enough samples gets no more, and that the race ends
// when all are closed.
func TestRaceClosesTests(t *testing.T) {
	arms := lineup(0)
	o := raceOptions(arms)
	o.Look, o.Most = 2, 1000
	o.Enough = func(out []Standing, test int) bool { return len(out[2].Samples(test)) >= 6+6*test }
	k := newTrack(1, arms, func(int, int) float64 { return 1 })
	out, err := Run(t.Context(), k, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		if a, b := len(out[i].Samples(0)), len(out[i].Samples(1)); a != 6 || b != 12 {
			t.Errorf("arm %d has %d and %d samples", i, a, b)
		}
	}
	if g := out[1].GainOver(&out[0]); g.Rounds != 6 || len(k.log) != 3*(6+12) {
		t.Errorf("%+v over %d samples", g, len(k.log))
	}
}
