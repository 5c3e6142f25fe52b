// Package finals races whole configurations and chooses the winner of each phase. Its input are
// partitions with their kernel tables, its output the phases of the plan with the samples of the
// race. Rerun races all arms again.
//
// Race lists the arms. A new kind of arm is added there, next to addTuned and deviceArms.
package finals

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/ranking"
	"sandwich/tuner/run"
)

// Entry is a partition that takes part, with its sets of PUs, best first, and the tables of each.
type Entry struct {
	Partition *partition.Partition
	Sets      [phase.Count][]ranking.ActiveSet
	Tables    [phase.Count][][]plans.Table
}

// Input is what finalists are made from.
type Input struct {
	Run     *run.Run
	Loader  *partition.Loader
	Ranking *ranking.Ranking
	Entries []Entry // the default plan's partition first
	TopK    int     // configurations to race
	AllowTP bool    // accept several ranks for any gain
	Device  Device  // that may run phases; zero: none
}

// Result has the winner of each phase.
type Result struct {
	Partition *partition.Partition
	Phases    [phase.Count]Winner
	Samples   []evidence.Arm // of all arms
	Noise     []float64      // A/A differences of whole forwards by phase
	Race      *arms.Race     // nil if whole configurations were not compared
}

// Winner is what a phase runs.
type Winner struct {
	Phase    plans.Phase
	Set      ranking.ActiveSet
	Measured bool // chosen by measurement; false if the budget ended first
	OnDevice bool // the device of the input runs the phase; the cores run Phase without it
}

// Default returns the default plan of a partition as the result.
func Default(p *partition.Partition) Result {
	out := Result{Partition: p}
	for _, ph := range phase.All {
		def := p.Phase(ph)
		out.Phases[ph] = Winner{Phase: *def, Set: ranking.ActiveSet{Name: "default", PUs: def.PUs}}
	}
	return out
}

// Race races whole configurations with their searched tables: the default, the default again (for
// the A/A noise), the default on unpinned threads, and tuned configurations of every partition. The
// default wins a phase unless an arm beats it by more than the noise. Another partition wins both
// phases if its gain outweighs the change of bits.
func Race(ctx context.Context, in Input) (Result, error) {
	home := in.Loader.Home()
	result := Default(home)
	if home.Rig == nil { // only kernel timings are available
		first := in.Entries[0]
		for _, ph := range home.Served() {
			result.Phases[ph] = Winner{Phase: plans.Phase{PUs: first.Sets[ph][0].PUs, Tables: first.Tables[ph][0]},
				Set: first.Sets[ph][0], Measured: true}
		}
		return result, nil
	}
	r := arms.New(in.Run, in.Loader, "finalists", 1)
	def := [phase.Count]*plans.Phase{&home.Plan.Prefill, &home.Plan.Decode}
	r.Add(evidence.ArmDefault, home, def, false, true)
	r.Add(evidence.ArmAgain, home, def, false, true)
	r.Add(evidence.ArmUnpinned, home, def, true, true)
	for _, e := range in.Entries {
		for _, pair := range e.pairs(in.Ranking, max(1, in.TopK/len(in.Entries))) {
			addTuned(r, e, pair)
		}
	}
	err := r.AddTests(ctx, false, run.FinalsEnd, home.Served()...)
	untried := in.Device.Device != nil
	if untried { // after the first rounds of the cores, so that a slow device cannot prevent them
		r.Late = func(ctx context.Context) (int, []*arms.Arm, error) {
			untried = false
			return deviceArms(ctx, r, in.Device)
		}
	}
	if err == nil {
		err = r.Measure(ctx, run.FinalsEnd, 0)
	}
	if untried {
		in.Run.Reject("device "+in.Device.ID, "the budget was over before it ran; give a larger --budget")
	}
	if errors.Is(err, arms.ErrUndecided) {
		for _, ph := range home.Served() {
			in.Run.Reject(ph.String(), err.Error()+": the default stays; give a larger --budget")
		}
		return result, nil
	}
	if err != nil {
		return result, err
	}
	return judge(r, in.AllowTP), nil
}

// addTuned adds a partition with its tables on one set of PUs for each phase.
func addTuned(r *arms.Race, e Entry, pair [phase.Count]int) {
	var phases [phase.Count]*plans.Phase
	var sets [phase.Count]ranking.ActiveSet
	for i := range phases {
		sets[i] = e.Sets[i][pair[i]]
		phases[i] = &plans.Phase{PUs: sets[i].PUs, Tables: e.Tables[i][pair[i]]}
	}
	name := fmt.Sprintf("tuned on PUs %s", sets[phase.Prefill].PUs)
	if len(r.Home.Served()) > 1 && !sets[phase.Prefill].PUs.Equal(sets[phase.Decode].PUs) {
		name += fmt.Sprintf(", decode on %s", sets[phase.Decode].PUs)
	}
	if e.Partition != r.Home {
		name += ", " + e.Partition.Name
	}
	r.Add(name, e.Partition, phases, false, false).Sets = sets
}

// pairs returns the sets of prefill and decode that are combined to whole configurations, at most
// limit: the best of both, the pairs of the ranking, and each set at least once.
func (e *Entry) pairs(ranked *ranking.Ranking, limit int) (out [][phase.Count]int) {
	add := func(pre, dec int) {
		pair := [phase.Count]int{phase.Prefill: pre, phase.Decode: dec}
		if pre >= 0 && dec >= 0 && len(out) < limit && !slices.Contains(out, pair) {
			out = append(out, pair)
		}
	}
	find := func(ph phase.Phase, pus topotree.CPUSet) int {
		if !slices.Contains(e.Partition.Served(), ph) {
			return 0
		}
		return slices.IndexFunc(e.Sets[ph], func(s ranking.ActiveSet) bool { return s.PUs.Equal(pus) })
	}
	add(0, 0)
	for _, c := range ranked.Ranked {
		if c.Config.TP() == len(e.Partition.Plan.Ranks) {
			add(find(phase.Prefill, c.Config.Prefill), find(phase.Decode, c.Config.Decode))
		}
	}
	for i := range e.Sets[phase.Prefill] {
		add(i, 0)
	}
	for i := range e.Sets[phase.Decode] {
		add(0, i)
	}
	return out
}
