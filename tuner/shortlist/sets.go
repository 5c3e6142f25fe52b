package shortlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/ranking"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
)

// Sets measures the sets of active PUs that rank first in the simulation, and the neighbors of the
// best, in each phase on whole forwards under the untuned default. It returns the sets for which
// there is time to search kernels. Sandwich section 5.3 ends with the simulation; measured forwards
// correct it. The partition must be open.
func Sets(ctx context.Context, in Input, p *partition.Partition, w run.Window) (
	out [phase.Count][]ranking.ActiveSet, err error) {
	c := &chooser{Input: in, p: p, window: w}
	for _, ph := range phase.All {
		def := ranking.ActiveSet{Name: "default", PUs: p.Phase(ph).PUs}
		if !slices.Contains(p.Served(), ph) {
			out[ph] = []ranking.ActiveSet{def}
			continue
		}
		candidates := withDefault(c.ranked(ph), def)
		if p.Rig == nil || len(candidates) == 1 {
			out[ph] = candidates[:1]
			continue
		}
		// The phases share the stage's time evenly.
		end := w.From + (w.SetsEnd-w.From)*float64(ph+1)/float64(len(p.Served()))
		if out[ph], err = c.measure(ctx, ph, candidates, end); err != nil {
			return out, err
		}
	}
	return out, nil
}

// chooser chooses the sets of one partition.
type chooser struct {
	Input
	p      *partition.Partition
	window run.Window
}

// ranked returns the sets of the ranking, or the only set if the user has chosen the PUs.
func (c *chooser) ranked(ph phase.Phase) []ranking.ActiveSet {
	if n := c.p.Subject.Plan.Threads; n != 0 {
		return []ranking.ActiveSet{{Name: fmt.Sprintf("--threads %d", n), PUs: c.p.Plan.Prefill.PUs}}
	}
	best, near := c.Ranking.Sets(ph, len(c.p.Plan.Ranks), c.TopK)
	first := best[:min(c.TopK, len(best))]
	for _, s := range best[len(first):] {
		c.Run.Reject(ph.String()+" on "+s.Name, fmt.Sprintf("not among the %d best of the simulated ranking", c.TopK))
	}
	return c.withEveryRank(slices.Concat(first, near))
}

// withEveryRank returns the sets in which each rank has a PU, because only a rank's own PUs can
// work on its weights.
func (c *chooser) withEveryRank(sets []ranking.ActiveSet) (out []ranking.ActiveSet) {
	ranks := c.p.Plan.Ranks
	if len(ranks) == 1 {
		return sets
	}
	for _, s := range sets {
		name := "PUs " + s.PUs.String() + " (" + s.Name + ")"
		if !s.PUs.In(c.p.Plan.PUs()) {
			c.Run.Reject(name, "they are of another partition")
			continue
		}
		if slices.ContainsFunc(ranks, func(r plans.Rank) bool {
			return !r.PUs.Intersects(s.PUs)
		}) {
			c.Run.Reject(name, "they leave a rank without a PU")
			continue
		}
		out = append(out, s)
	}
	return out
}

// withDefault puts the set of the default plan among the candidates.
func withDefault(sets []ranking.ActiveSet, def ranking.ActiveSet) []ranking.ActiveSet {
	if slices.ContainsFunc(sets, func(s ranking.ActiveSet) bool { return s.PUs.Equal(def.PUs) }) {
		return sets
	}
	return append([]ranking.ActiveSet{def}, sets...)
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
func (c *chooser) tabled() int {
	left := c.Run.Until(c.window.TablesEnd).Seconds() - c.Run.Until(c.window.SetsEnd).Seconds()
	n := int(left / float64(len(c.p.Served())*max(1, len(c.p.Shapes))) / tableSeconds[c.Effort.Name])
	return max(1, min(n, c.TopK))
}

// measure races the sets of a phase and returns those that get tables, best first.
func (c *chooser) measure(ctx context.Context, ph phase.Phase, sets []ranking.ActiveSet, end float64) (
	[]ranking.ActiveSet, error) {
	w, def := c.window, c.p.Phase(ph)
	r := arms.New(c.Run, c.Loader, "active PUs", w.SetsEnd+setsOver*(w.TablesEnd-w.SetsEnd))
	for _, s := range sets {
		var phases [phase.Count]*plans.Phase
		phases[ph] = &plans.Phase{PUs: s.PUs, Tables: def.Tables}
		r.Add(s.Name, c.p, phases, false, s.PUs.Equal(def.PUs))
	}
	keep := c.tabled()
	err := r.AddTests(ctx, true, end, ph)
	if err == nil {
		err = r.Measure(ctx, end, keep)
	}
	if errors.Is(err, arms.ErrUndecided) {
		c.Run.Reject(ph.String(), err.Error()+": the PUs of the default plan stay")
		i := slices.IndexFunc(sets, func(s ranking.ActiveSet) bool { return s.PUs.Equal(def.PUs) })
		return sets[i : i+1], nil
	}
	if err != nil {
		return nil, err
	}
	return c.fastest(r, ph, sets, keep), nil
}

// fastest returns the sets of a race that get tables, at most keep and that of the default plan. It
// records why the others do not.
func (c *chooser) fastest(r *arms.Race, ph phase.Phase, sets []ranking.ActiveSet, keep int) (out []ranking.ActiveSet) {
	scores := make([]float64, len(sets)) // times relative to that of the first
	order := make([]int, len(sets))
	for i, a := range r.Arms {
		scores[i], order[i] = 1/(1+a.GainOver(&r.Arms[0].Standing).Median), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	for rank, i := range order {
		times := scores[i] / scores[order[0]]
		stays := r.Arms[i].Stays && times <= clearlySlower
		if rank == 0 || rank < keep && times <= tablesGain && r.Arms[i].Lost == "" || stays {
			out = append(out, sets[i])
			continue
		}
		c.Run.Reject(fmt.Sprintf("%s on %s (PUs %s)", ph, sets[i].Name, sets[i].PUs),
			fmt.Sprintf("takes %.2f times as long as %s with the default schedules in %d rounds", times,
				sets[order[0]].Name, len(r.Arms[i].Laps)))
	}
	return out
}
