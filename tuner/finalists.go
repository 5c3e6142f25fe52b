package tuner

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
)

// decide races whole configurations with their searched tables: the default, the default again (for
// the A/A noise), the default on unpinned threads, and tuned configurations of every partition. The
// default wins a phase unless an arm beats it by more than the noise. Another partition wins both
// phases if its gain outweighs the change of bits.
func (t *tuning) decide(list []*partition) error {
	home := t.home
	if home.rig == nil { // only kernel timings are available
		for _, i := range t.served() {
			ph := &home.phases[i]
			ph.winner, ph.set, ph.measured = plans.Phase{PUs: ph.sets[0].PUs, Tables: ph.tables[0]}, ph.sets[0], true
		}
		return nil
	}
	f := &raceArms{tuning: t, stage: "finalists", limit: 1}
	def := [2]*plans.Phase{&home.def.Prefill, &home.def.Decode}
	f.add(evidence.ArmDefault, home, def, false, true)
	f.add(evidence.ArmAgain, home, def, false, true)
	f.add(evidence.ArmUnpinned, home, def, true, true)
	for _, p := range list {
		for _, pair := range p.pairs(max(1, t.o.TopK/len(list))) {
			f.addTuned(p, pair)
		}
	}
	err := f.addTests(false, finalistsEnd, t.served()...)
	if err == nil {
		err = f.race(finalistsEnd, 0)
	}
	if errors.Is(err, race.ErrUndecided) {
		for _, i := range t.served() {
			t.reject(phaseNames[i], err.Error()+": the default stays; give a larger --budget")
		}
		return nil
	}
	if err == nil {
		t.judge(f)
		t.raced = f
	}
	return err
}

// addTuned adds a partition with its tables on one set of PUs for each phase.
func (f *raceArms) addTuned(p *partition, pair [2]int) {
	var phases [2]*plans.Phase
	var sets [2]ranking.ActiveSet
	for i := range phases {
		sets[i] = p.phases[i].sets[pair[i]]
		phases[i] = &plans.Phase{PUs: sets[i].PUs, Tables: p.phases[i].tables[pair[i]]}
	}
	name := fmt.Sprintf("tuned on PUs %s", sets[prefill].PUs)
	if len(f.served()) > 1 && !slices.Equal(sets[prefill].PUs, sets[decode].PUs) {
		name += fmt.Sprintf(", decode on %s", sets[decode].PUs)
	}
	if p != p.home {
		name += ", " + p.name()
	}
	f.add(name, p, phases, false, false).sets = sets
}

// pairs returns the sets of prefill and decode that are combined to whole configurations: the best
// of both, the pairs of the ranking, and each set at least once.
func (t *partition) pairs(most int) (out [][2]int) {
	add := func(pre, dec int) {
		if pair := [2]int{pre, dec}; pre >= 0 && dec >= 0 && len(out) < most && !slices.Contains(out, pair) {
			out = append(out, pair)
		}
	}
	find := func(phase int, pus []int) int {
		if !slices.Contains(t.served(), phase) {
			return 0
		}
		return slices.IndexFunc(t.phases[phase].sets, func(s ranking.ActiveSet) bool {
			return slices.Equal(s.PUs,
				pus)
		})
	}
	add(0, 0)
	for _, c := range t.ranking.Ranked {
		if c.Config.TP() == len(t.def.Ranks) {
			add(find(prefill, c.Config.Prefill.Slice()), find(decode, c.Config.Decode.Slice()))
		}
	}
	for i := range t.phases[prefill].sets {
		add(i, 0)
	}
	for i := range t.phases[decode].sets {
		add(0, i)
	}
	return out
}

// judge picks the winners of a race and writes every arm into the evidence. The first two arms are
// the default and its repetition.
func (t *tuning) judge(f *raceArms) {
	base, same := &f.arms[0].Standing, &f.arms[1].Standing
	var best [2]*raceArm
	for _, i := range t.served() {
		best[i] = t.judgePhase(f, i)
	}
	if p := t.judgeRanks(f, best); p != nil {
		best = [2]*raceArm{p, p}
	}
	won := t.home
	for _, i := range t.served() {
		if best[i] != f.arms[0] {
			won = best[i].on
		}
	}
	t.won = won
	for _, i := range t.served() {
		b, ph := best[i], &won.phases[i]
		ph.measured = true
		if b != f.arms[0] {
			ph.winner, ph.set = *b.phases[i], b.sets[i]
		}
		for _, a := range f.arms {
			name := phaseNames[i] + ", " + a.Name
			if a == b {
				name = phaseNames[i] + ", " + evidence.WinnerMark + a.Name
			}
			t.evidence.Finalists = append(t.evidence.Finalists, f.evidenceOf(a, i, name)...)
			if a != b && &a.Standing != same && &a.Standing != base {
				t.reject(phaseNames[i]+", "+a.Name, f.whyNot(a, i))
			}
		}
	}
}

// over returns the gain of an arm over the default in the tests of a phase.
func (f *raceArms) over(arm *raceArm, phase int) evidence.Gain {
	arms := map[string][]evidence.Arm{}
	for _, a := range []*raceArm{f.arms[0], f.arms[1], arm} {
		arms[a.Name] = f.evidenceOf(a, phase, "")
	}
	return evidence.Over(arms, arm.Name)
}

// speed returns the speed of a pair of arms, one for each phase, relative to the default: the
// geometric mean over the served phases.
func (f *raceArms) speed(arms [2]*raceArm) float64 {
	sum := 0.0
	for _, i := range f.served() {
		sum += math.Log1p(f.over(arms[i], i).Median)
	}
	return math.Exp(sum / float64(len(f.served())))
}

func (f *raceArms) noise(phase int) float64 {
	return evidence.Noise(f.evidenceOf(f.arms[0], phase, ""), f.evidenceOf(f.arms[1], phase, ""))
}

// judgePhase returns the arm of the default plan's partition that wins a phase. All of these arms
// produce the same bits, so choosing one that is no faster has no cost.
func (t *tuning) judgePhase(f *raceArms, phase int) *raceArm {
	noise := f.noise(phase)
	t.noise = append(t.noise, noise)
	equal := f.over(f.arms[1], phase)
	apart := equal.Rounds > 0 && (equal.Low > 0 || equal.High < 0) // then the rounds measure something else as well
	best, most := f.arms[0], 0.0
	for _, a := range f.arms[2:] {
		if a.on != t.home || a.unpinned || a.Lost != "" {
			continue
		}
		if g := f.over(a, phase); (g.Beats(noise) || g.Likely() && !apart) && g.Median > most {
			best, most = a, g.Median
		}
	}
	return best
}

// judgeRanks returns the arm of another partition that wins both phases, or nil if no gain
// outweighs the change of bits.
func (t *tuning) judgeRanks(f *raceArms, home [2]*raceArm) (best *raceArm) {
	least := f.speed(home) / t.worth()
	for _, a := range f.arms[2:] {
		g := a.GainOver(&f.arms[0].Standing)
		if a.on == t.home || a.Lost != "" || g.Rounds < minRounds || g.Low <= 0 {
			continue
		}
		if speed := f.speed([2]*raceArm{a, a}); speed > least {
			best, least = a, speed
		}
	}
	return best
}

// whyNot describes the result of an arm in a phase that it did not win.
func (f *raceArms) whyNot(a *raceArm, phase int) string {
	g := f.over(a, phase)
	if g.Rounds == 0 {
		return a.Lost
	}
	why := fmt.Sprintf("%+.1f %% against the default, %+.1f to %+.1f %% in %d rounds; two equal arms differ by up to "+
		"%.1f %%", 100*g.Median, 100*g.Low, 100*g.High, g.Rounds, 100*f.noise(phase))
	if a.on != f.home {
		why += fmt.Sprintf("; several ranks change the bits and must take less than %.2f of the time (--allow "+
			"tp takes "+
			"any gain)", f.worth())
	}
	if a.Lost != "" {
		why += "; " + a.Lost
	}
	return why
}
