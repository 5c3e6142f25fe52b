package tuner

import (
	"errors"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/tuner/race"
	"sandwich/tuner/search"
)

// worthRanks is the largest fraction of the time of one rank that several ranks may take, because
// they change the bits (rule 6). noisyRanks is the fraction if the user accepts any gain.
// hopefulRanks applies before their tables are searched.
const (
	worthRanks   = 0.9
	noisyRanks   = 0.98
	hopefulRanks = 1.1
)

// ranksLimit is the part of the budget that the first rounds of all partitions may take.
const ranksLimit = 0.15

// worth returns the largest fraction of the time of one rank that several ranks may take.
func (t *tuning) worth() float64 {
	if t.o.AllowTP {
		return noisyRanks
	}
	return worthRanks
}

// raceRanks opens the default plan's partition and races partitions into other numbers of ranks
// with it, each on the PUs that the ranking chose, under untuned schedules. It returns the default
// plan's partition, then those that are not clearly slower and should be tuned. If the model cannot
// run, it returns only the first.
func (t *tuning) raceRanks(home *partition) ([]*partition, error) {
	out := []*partition{home}
	if err := t.open(home); err != nil || home.rig == nil || t.o.TP > 0 || t.o.Threads > 0 {
		return out, err
	}
	candidates := t.ranking.SeveralRanks(t.o.TopK)
	if len(candidates) == 0 {
		return out, nil
	}
	f := &raceArms{tuning: t, stage: "ranks", limit: ranksLimit}
	def := [2]*plans.Phase{&home.def.Prefill, &home.def.Decode}
	f.add(evidence.ArmDefault, home, def, false, true)
	f.add(evidence.ArmUnpinned, home, def, true, true)
	for _, c := range candidates {
		s, err := c.Config.Service()
		if err != nil {
			return nil, err
		}
		p, err := t.newPartition(&s)
		if err != nil {
			return nil, err
		}
		f.add(c.Names[0], p, [2]*plans.Phase{&p.def.Prefill, &p.def.Decode}, false, false)
	}
	err := f.addTests(true, ranksEnd, prefill, decode)
	f.tests = slices.DeleteFunc(f.tests, func(x raceTest) bool { return x.phase == decode && x.n > 1 })
	if err == nil {
		err = f.race(ranksEnd, len(candidates))
	}
	if err != nil && !errors.Is(err, race.ErrUndecided) {
		return nil, err
	}
	return append(out, t.hopeful(f)...), nil
}

// hopeful returns the partitions of a race that get their own tables, best first. It records why
// the others do not.
func (t *tuning) hopeful(f *raceArms) (out []*partition) {
	took := func(c *raceArm) float64 { return 1 / (1 + c.GainOver(&f.arms[0].Standing).Median) }
	for _, c := range f.arms {
		for phase := range phaseNames {
			if len(c.Laps) > 0 {
				t.evidence.Finalists = append(t.evidence.Finalists, f.evidenceOf(c, phase, "ranks, "+c.Name)...)
			}
		}
	}
	list := slices.Clone(f.arms[2:])
	slices.SortStableFunc(list, func(a, b *raceArm) int {
		return map[bool]int{true: -1, false: 1}[took(a) < took(b)]
	})
	most := map[string]int{search.Quick.Name: 1, search.Standard.Name: 2, search.Full.Name: 4}[t.effort.Name]
	for _, c := range list {
		g := c.GainOver(&f.arms[0].Standing)
		switch {
		case g.Rounds < minRounds && c.on.failed == nil:
			t.reject(c.Name, fmt.Sprintf("measured in %d rounds: the budget has no time for more; give a larger "+
				"--budget, or --tp", g.Rounds))
		case took(c) > hopefulRanks || len(out) == most || c.Lost != "":
			why := c.Lost
			if why != "" {
				why = "; " + why
			}
			t.reject(c.Name, fmt.Sprintf("takes %.2f times as long as one rank with the default schedules, in %d "+
				"rounds; several ranks change the bits and must take less than %.2f in the end (--allow tp takes any "+
				"gain)%s", took(c), g.Rounds, t.worth(), why))
		default:
			out = append(out, c.on)
		}
	}
	return out
}
