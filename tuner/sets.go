package tuner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/phase"
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
	"sandwich/tuner/search"
)

// chooseSets measures the sets of active PUs that rank first in the simulation, and the neighbors
// of the best, in each phase on whole forwards under the untuned default. It keeps the sets for
// which there is time to search kernels. Sandwich section 5.3 ends with the simulation; measured
// forwards correct it.
func (t *partition) chooseSets() error {
	for i := range t.phases {
		ph := &t.phases[i]
		if !slices.Contains(t.served(), i) {
			ph.sets = []ranking.ActiveSet{ph.set}
			continue
		}
		ranked := t.chosen()
		if t.o.Threads == 0 {
			best, near := t.ranking.Sets(phase.Phase(i), len(t.def.Ranks), t.o.TopK)
			for _, s := range best[min(t.o.TopK, len(best)):] {
				t.reject(ph.name+" on "+s.Name, fmt.Sprintf("not among the %d best of the simulated ranking", t.o.TopK))
			}
			ranked = t.withEveryRank(append(best[:min(t.o.TopK, len(best)):min(t.o.TopK, len(best))], near...))
		}
		candidates := withDefault(ranked, phaseOf(t.def, i).PUs)
		if t.rig == nil || len(candidates) == 1 {
			ph.sets = candidates[:1]
			continue
		}
		// The phases share the stage's time evenly.
		end := t.from + (t.setsEnd-t.from)*float64(i+1)/float64(len(t.served()))
		var err error
		if ph.sets, err = t.measureSets(i, candidates, end); err != nil {
			return err
		}
	}
	return nil
}

// withEveryRank returns the sets in which each rank has a PU, because only a rank's own PUs can
// work on its weights.
func (t *partition) withEveryRank(sets []ranking.ActiveSet) (out []ranking.ActiveSet) {
	if len(t.def.Ranks) == 1 {
		return sets
	}
	for _, s := range sets {
		if slices.ContainsFunc(s.PUs, func(pu int) bool { return !slices.Contains(t.def.PUs(), pu) }) {
			t.reject("PUs "+s.PUs.String()+" ("+s.Name+")", "they are of another partition")
			continue
		}
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
func withDefault(sets []ranking.ActiveSet, pus plans.PUSet) []ranking.ActiveSet {
	if slices.ContainsFunc(sets, func(s ranking.ActiveSet) bool { return slices.Equal(s.PUs, pus) }) {
		return sets
	}
	return append([]ranking.ActiveSet{{Name: "default", PUs: pus}}, sets...)
}

// A set gets tables if it is slower than the best by at most tablesGain, which better schedules may
// make up for. The set of the default plan also stays unless it is clearly slower, so that a
// disturbance during the measurement does not exclude it.
const (
	tablesGain    = 1.15
	clearlySlower = 1.5
)

// setsOver is the part of the kernel search's time that the minimum rounds of the sets may use.
const setsOver = 0.3

// tableSeconds is the minimum time of the search of one table, by effort.
var tableSeconds = map[string]float64{search.Quick.Name: 0.5, search.Standard.Name: 2, search.Full.Name: 5}

// tabled returns for how many sets of a phase there is time to search tables.
func (t *partition) tabled() int {
	left := t.until(t.kernelsEnd).Seconds() - t.until(t.setsEnd).Seconds()
	n := int(left / float64(len(t.served())*max(1, len(t.shapes))) / tableSeconds[t.effort.Name])
	return max(1, min(n, t.o.TopK))
}

func (t *partition) measureSets(phase int, sets []ranking.ActiveSet, end float64) ([]ranking.ActiveSet, error) {
	f := &raceArms{tuning: t.tuning, stage: "active PUs", limit: t.setsEnd + setsOver*(t.kernelsEnd-t.setsEnd)}
	def := phaseOf(t.def, phase)
	for _, s := range sets {
		var phases [2]*plans.Phase
		phases[phase] = &plans.Phase{PUs: s.PUs, Tables: def.Tables}
		f.add(s.Name, t, phases, false, slices.Equal(s.PUs, def.PUs))
	}
	name := t.phases[phase].name
	keep := t.tabled()
	err := f.addTests(true, end, phase)
	if err == nil {
		err = f.race(end, keep)
	}
	if errors.Is(err, race.ErrUndecided) {
		t.reject(name, err.Error()+": the PUs of the default plan stay")
		i := slices.IndexFunc(sets, func(s ranking.ActiveSet) bool { return slices.Equal(s.PUs, def.PUs) })
		return sets[i : i+1], nil
	}
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(sets)) // times relative to that of the first
	order := make([]int, len(sets))
	for i, a := range f.arms {
		scores[i], order[i] = 1/(1+a.GainOver(&f.arms[0].Standing).Median), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	var out []ranking.ActiveSet
	for rank, i := range order {
		times, stays := scores[i]/scores[order[0]], f.arms[i].Stays && scores[i]/scores[order[0]] <= clearlySlower
		if rank == 0 || rank < keep && times <= tablesGain && f.arms[i].Lost == "" || stays {
			out = append(out, sets[i])
			continue
		}
		t.reject(fmt.Sprintf("%s on %s (PUs %s)", name, sets[i].Name, sets[i].PUs),
			fmt.Sprintf("takes %.2f times as long as %s with the default schedules in %d rounds", times,
				sets[order[0]].Name, len(f.arms[i].Laps)))
	}
	return out, nil
}
