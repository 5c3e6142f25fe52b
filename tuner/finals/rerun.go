package finals

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"sandwich/plans"
	"sandwich/plans/gate"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/arms"
	"sandwich/tuner/race"
	"sandwich/tuner/rig"
)

// LeastRerun is the minimum number of rounds of a conclusive rerun.
const LeastRerun = 6

// Rerun is a fresh race of the winning plan with every arm of the race. The best of many noisy
// measurements is biased upward; the rerun has no such bias. Rows have the arm as baseline and the
// plan as candidate, by phase. A row is Regressed if the arm beats the plan significantly, by ranks
// within rounds and corrected over all rows.
type Rerun struct {
	Rounds int               `json:"rounds"`
	Rows   []gate.RowVerdict `json:"rows"`
	// Same are the arms that run a phase exactly as the plan does. They are judged separately,
	// because they cannot beat it; a significant difference shows that differences of this size
	// mean nothing.
	Same []gate.RowVerdict `json:"same,omitempty"`
	Why  string            `json:"why,omitempty"` // why there are fewer rounds than requested
}

// Beaten returns the rows of arms that significantly beat the plan.
func (r *Rerun) Beaten() (out []gate.RowVerdict) {
	for _, v := range r.Rows {
		if v.Finding == gate.Regressed {
			out = append(out, v)
		}
	}
	return out
}

// forever is longer than any rerun.
const forever = 1000 * time.Hour

// RerunOptions configure a rerun.
type RerunOptions struct {
	Rounds   int  // of all arms
	EverySet bool // also race the plan's tables on every other set of its PUs
	AllowTP  bool // accept several ranks for any gain
}

// Repeat races all arms of a result again, interleaved with the winning plan and past the budget;
// no arm stops early. If ctx ends, it judges the complete rounds.
func Repeat(ctx context.Context, won Result, o RerunOptions) (*Rerun, error) {
	if won.Race == nil {
		return &Rerun{Why: "no whole configurations were raced"}, nil
	}
	run := won.Race.Run
	r := &arms.Race{Run: run, Loader: won.Race.Loader, Home: won.Race.Home, Stage: "rerun", Tests: won.Race.Tests,
		Limit: float64(forever) / float64(run.Budget)}
	var phases [phase.Count]*plans.Phase
	for _, ph := range r.Home.Served() {
		phases[ph] = &won.Phases[ph].Phase
	}
	plan := r.Add("the plan", won.Partition, phases, false, true)
	for _, a := range won.Race.Arms {
		if len(a.Laps) > 0 {
			r.AddLike(a)
		}
		for _, ph := range r.Home.Served() {
			if won.Phases[ph].OnDevice && a.Device != nil {
				plan.Device, plan.OnDevice[ph] = a.Device, true
			}
		}
	}
	if o.EverySet {
		addSets(r, won)
	}
	run.Say(r.Stage, "", true)
	out, err := race.Run(ctx, r, race.Options{Arms: r.Contenders(), Tests: len(r.Tests), Least: o.Rounds,
		Most: o.Rounds, Budget: forever.Seconds(), Limit: forever.Seconds(), Seed: run.Seed + 1,
		Said: func(arm, test int, seconds float64) {
			run.Say(r.Stage, fmt.Sprintf("%s, %s", r.Arms[arm].Name, r.Tests[test].Name()), false)
		}})
	stopped := context.Cause(ctx) != nil
	if err != nil && !stopped {
		return nil, err
	}
	for i, a := range r.Arms {
		a.Standing = out[i]
	}
	result := judgeRerun(r, o.AllowTP)
	if stopped {
		result.Why = "it was interrupted"
	}
	return result, nil
}

// addSets adds the plan's tables on every other set of its PUs, or none if there are too many.
func addSets(r *arms.Race, won Result) {
	ranks := won.Partition.Plan.Ranks
	var all topotree.CPUSet
	for _, rank := range ranks {
		all = all.Union(rank.PUs)
	}
	if err := EverySetFits(all); err != nil { // the winner has more PUs than the default plan
		r.Run.Reject("every set of PUs", err.Error())
		return
	}
	for _, pus := range setsOf(ranks) {
		addSet(r, won, pus)
	}
}

// addSet adds the plan's tables with both phases on one set of PUs, unless the plan uses that set
// in each phase.
func addSet(r *arms.Race, won Result, pus topotree.CPUSet) {
	var phases [phase.Count]*plans.Phase
	same := true
	for _, ph := range r.Home.Served() {
		one := won.Phases[ph].Phase
		same = same && one.PUs.Equal(pus)
		one.PUs = pus
		phases[ph] = &one
	}
	if !same {
		r.Add("PUs "+pus.String(), won.Partition, phases, false, true)
	}
}

// maxSetPUs is the largest number of PUs whose subsets are all raced.
const maxSetPUs = 4

// EverySetFits returns an error if a plan has too many PUs to race all subsets.
func EverySetFits(pus topotree.CPUSet) error {
	if pus.Count() > maxSetPUs {
		return fmt.Errorf("--every-set: %d PUs have too many sets to race; restrict them by --threads %d",
			pus.Count(), maxSetPUs)
	}
	return nil
}

// setsOf returns all subsets of the PUs of some ranks with at least one PU in each rank, because
// only a rank's own PUs can work on its weights.
func setsOf(ranks []plans.Rank) []topotree.CPUSet {
	sets := []topotree.CPUSet{{}}
	for _, r := range ranks {
		var longer []topotree.CPUSet
		for _, set := range sets {
			for mask := 1; mask < 1<<r.PUs.Count(); mask++ {
				with := set
				for i, pu := range r.PUs.Slice() {
					if mask>>i&1 == 1 {
						with = with.Union(topotree.NewCPUSet(pu))
					}
				}
				longer = append(longer, with)
			}
		}
		sets = longer
	}
	return sets
}

// judgeRerun compares the first arm of a rerun, the plan, with each of the others in each phase.
func judgeRerun(r *arms.Race, allowTP bool) *Rerun {
	out := &Rerun{Rounds: math.MaxInt}
	var rows, same []gate.Row
	plan := r.Arms[0]
	for _, a := range r.Arms[1:] {
		for _, ph := range r.Home.Served() {
			row := gate.Row{Name: a.Name, Phase: ph.String(), Unit: "tokens/s", Why: "raced"}
			worth := 1.0
			if len(a.On.Plan.Ranks) > 1 && a.On != plan.On {
				worth = arms.Worth(allowTP)
				row.Why = fmt.Sprintf("raced; several ranks change the bits and must take less than %.2f of the time",
					worth)
			}
			row.Baseline, row.Candidate = together(a, plan, phaseRate(r.Tests, ph))
			for k := range row.Baseline {
				row.Baseline[k] *= worth
			}
			out.Rounds = min(out.Rounds, len(row.Baseline))
			if runsAs(a, plan, ph) {
				row.Why = "raced; it runs as the plan does"
				same = append(same, row)
			} else {
				rows = append(rows, row)
			}
		}
	}
	if len(rows)+len(same) == 0 {
		out.Rounds = 0
	}
	o := gate.Options{Ceiling: math.Inf(1), Interleaved: true}
	out.Rows, out.Same = gate.Judge(rows, o), gate.Judge(same, o)
	return out
}

// runsAs reports whether two arms run a phase with the same tables, PUs and weights.
func runsAs(a, b *arms.Arm, ph phase.Phase) bool {
	x, y := a.Phases[ph], b.Phases[ph]
	return a.On == b.On && a.Unpinned == b.Unpinned && a.OnDevice[ph] == b.OnDevice[ph] && x != nil && y != nil &&
		reflect.DeepEqual(x, y)
}

// phaseRate returns a function that computes the rate of a lap: the geometric mean over the tests
// of a phase.
func phaseRate(tests []rig.Test, ph phase.Phase) func(race.Lap) float64 {
	return func(l race.Lap) float64 {
		sum, n := 0.0, 0
		for k, x := range tests {
			if x.Phase == ph {
				sum += math.Log(float64(x.N) / l.Seconds[k])
				n++
			}
		}
		return math.Exp(sum / float64(n))
	}
}

// together returns the rates of two arms in the rounds that both ran.
func together(a, b *arms.Arm, rate func(race.Lap) float64) (x, y []float64) {
	other := map[int]race.Lap{}
	for _, l := range b.Laps {
		other[l.Round] = l
	}
	for _, l := range a.Laps {
		if o, both := other[l.Round]; both {
			x, y = append(x, rate(l)), append(y, rate(o))
		}
	}
	return x, y
}
