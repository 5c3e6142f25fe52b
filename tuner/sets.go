package tuner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/pool"
	"sandwich/tuner/search"
)

// chooseSets measures the sets of active PUs that the simulated ranking puts first, each phase on
// whole forwards under the untuned default, and keeps the best few for the kernel search: Sandwich
// section 5.3 ends with the simulation, which on the machine itself forwards correct.
func (t *tuning) chooseSets(l *pool.Leader) error {
	for i := range t.phases {
		ph := &t.phases[i]
		ranked := t.chosen()
		if t.o.Threads == 0 {
			ranked = t.withEveryRank(t.ranking.sets(i, len(t.def.Ranks)))
		}
		candidates := withDefault(ranked[:min(t.o.TopK, len(ranked))], phaseOf(t.def, i).PUs)
		for _, s := range ranked[min(t.o.TopK, len(ranked)):] {
			t.reject(ph.name+" on "+s.Name, fmt.Sprintf("not among the %d best of the simulated ranking", t.o.TopK))
		}
		if t.rig == nil || len(candidates) == 1 {
			ph.sets = candidates[:1]
			continue
		}
		// Each phase has half of the stage's time.
		end := setsEnd * float64(i+1) / 2
		var err error
		if ph.sets, err = t.measureSets(l, i, candidates, end); err != nil {
			return err
		}
	}
	return nil
}

// withEveryRank keeps the sets in which each rank has a PU: what a rank holds of the weights nobody
// else can work on.
func (t *tuning) withEveryRank(sets []activeSet) (out []activeSet) {
	if len(t.def.Ranks) == 1 {
		return sets
	}
	for _, s := range sets {
		if slices.ContainsFunc(t.def.Ranks, func(r plans.Rank) bool {
			return !slices.ContainsFunc(r.PUs, func(pu int) bool { return slices.Contains(s.PUs, pu) })
		}) {
			t.reject("PUs "+s.PUs.String()+" ("+s.Name+")", "they leave a rank without a PU")
			continue
		}
		out = append(out, s)
	}
	return out
}

// withDefault puts the PUs of the default plan among the candidates.
func withDefault(sets []activeSet, pus plans.PUSet) []activeSet {
	if slices.ContainsFunc(sets, func(s activeSet) bool { return slices.Equal(s.PUs, pus) }) {
		return sets
	}
	return append([]activeSet{{Name: "default", PUs: pus}}, sets...)
}

// survivors is how many sets a phase may keep, and how much slower than the best they may be. The
// set of the default plan stays besides unless it is clearly slower: a disturbance while sets are
// measured must not cost the plan half of the machine.
func (t *tuning) survivors() (n int, within float64) {
	switch t.o.Effort {
	case search.Quick.Name:
		return 1, 0
	case search.Full.Name:
		return 4, 1.15
	}
	return 2, 1.08
}

const clearlySlower = 1.5

func (t *tuning) measureSets(l *pool.Leader, phase int, sets []activeSet, end float64) ([]activeSet, error) {
	var arms []*arm
	defer func() { closeArms(arms) }()
	def := phaseOf(t.def, phase)
	for _, s := range sets {
		a, err := t.rig.newArm(s.Name, &plans.Phase{PUs: s.PUs, Tables: def.Tables}, false)
		if err != nil {
			return nil, err
		}
		a.stays = slices.Equal(s.PUs, def.PUs)
		arms = append(arms, a)
	}
	name := t.phases[phase].name
	tests, err := t.tests(l, phase, true, arms[0], len(arms), end)
	if err != nil {
		return nil, err
	}
	keep, within := t.survivors()
	err = t.race(l, arms, tests, raceStage{"active PUs", name, end, keep})
	if errors.Is(err, errUndecided) {
		t.reject(name, err.Error()+": the PUs of the default plan stay")
		i := slices.IndexFunc(arms, func(a *arm) bool { return a.stays })
		return sets[i : i+1], nil
	}
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(arms)) // times over that of the first
	for i, a := range arms {
		scores[i] = 1 / (1 + a.GainOver(&arms[0].Standing).Median)
	}
	order := make([]int, len(arms))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	var out []activeSet
	for rank, i := range order {
		times := scores[i] / scores[order[0]]
		if rank == 0 || rank < keep && times <= within && arms[i].Lost == "" || arms[i].stays &&
			times <= clearlySlower {
			out = append(out, sets[i])
			continue
		}
		t.reject(fmt.Sprintf("%s on %s (PUs %s)", name, sets[i].Name, sets[i].PUs),
			fmt.Sprintf("takes %.2f times as long as %s with the default schedules in %d rounds", times,
				sets[order[0]].Name, len(arms[i].Laps)))
	}
	return out, nil
}

// tests are the forwards that arms of a phase are compared on, few and small ones to choose sets
// by. A short forward tells how long others take; those that would not fit the time are made
// shorter or left out.
func (t *tuning) tests(l *pool.Leader, phase int, small bool, a *arm, arms int, end float64) ([]*test, error) {
	depth := min(decodeDepth, max(1, t.shape.Context-1))
	left := t.until(end).Seconds() / float64(arms*(minRounds+1)) // for one forward of each test
	if phase == decode {
		return t.decodeTests(l, small, a, depth, left)
	}
	short := t.rig.prefillTest(min(t.def.Chunk, shortPrompt))
	seconds, err := t.calibrate(l, a, &short)
	if err != nil {
		return nil, err
	}
	n := t.def.Chunk
	if small {
		n = min(n, 128)
	}
	perToken := seconds / float64(short.tokens)
	for n > 2*shortPrompt && float64(n+64)*perToken > left {
		n /= 2
	}
	long := t.rig.prefillTest(n)
	long.times = repeats(perToken * float64(n))
	if small || n <= 64 {
		return []*test{&long}, nil
	}
	middle := t.rig.prefillTest(64)
	middle.times = repeats(perToken * 64)
	return []*test{&long, &middle}, nil
}

// shortPrompt is the prompt that tells how long others take, in tokens.
const shortPrompt = 32

func (t *tuning) decodeTests(l *pool.Leader, small bool, a *arm, depth int, left float64) ([]*test, error) {
	batches := []int{1, 4, 16}
	if small {
		batches = []int{1, 16}
	}
	var out []*test
	for _, n := range batches {
		if n = min(n, t.def.BatchMax); len(out) > 0 && n == out[len(out)-1].tokens {
			break
		}
		x := t.rig.decodeTest(n, depth)
		seconds, err := t.calibrate(l, a, &x)
		if err != nil {
			return nil, err
		}
		if left -= seconds; left < 0 && len(out) > 0 {
			break
		}
		out = append(out, &x)
	}
	return out, nil
}
