package tuner

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/plans/gate"
	"sandwich/tuner/race"
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

// rerun races all arms again, interleaved with the winning plan and past the budget; no arm stops
// early. If ctx ends, it judges the complete rounds.
func (t *tuning) rerun() (*Rerun, error) {
	if t.raced == nil {
		return &Rerun{Why: "no whole configurations were raced"}, nil
	}
	f := &raceArms{tuning: t, stage: "rerun", limit: float64(forever) / float64(t.o.Budget), tests: t.raced.tests}
	won := t.winner()
	var phases [2]*plans.Phase
	for _, i := range t.served() {
		phases[i] = &won.phases[i].winner
	}
	f.add("the plan", won, phases, false, true)
	for _, a := range t.raced.arms {
		if len(a.Laps) > 0 {
			f.add(a.Name, a.on, a.phases, a.unpinned, true)
		}
	}
	if t.o.EverySet {
		for _, pus := range setsOf(won.def.Ranks) {
			f.addSet(won, pus)
		}
	}
	o := race.Options{Tests: len(f.tests), Least: t.o.Rerun, Most: t.o.Rerun, Budget: forever.Seconds(),
		Limit: forever.Seconds(), Seed: t.o.Seed + 1, Said: func(arm, test int, seconds float64) {
			f.say(f.stage, fmt.Sprintf("%s, %s", f.arms[arm].Name, f.tests[test].name()), false)
		}}
	for _, a := range f.arms {
		o.Arms = append(o.Arms, a.Contender)
	}
	f.say(f.stage, "", true)
	out, err := race.Run(t.ctx, f, o)
	stopped := context.Cause(t.ctx) != nil
	if err != nil && !stopped {
		return nil, err
	}
	for i, a := range f.arms {
		a.Standing = out[i]
	}
	r := f.judgeRerun()
	if stopped {
		r.Why = "it was interrupted"
	}
	return r, nil
}

// addSet adds the plan's tables with both phases on one set of PUs, unless the plan uses that set
// in each phase.
func (f *raceArms) addSet(won *partition, pus plans.PUSet) {
	var phases [2]*plans.Phase
	same := true
	for _, i := range f.served() {
		phase := won.phases[i].winner
		same = same && slices.Equal(phase.PUs, pus)
		phase.PUs = pus
		phases[i] = &phase
	}
	if !same {
		f.add("PUs "+pus.String(), won, phases, false, true)
	}
}

// mostSetPUs is the largest number of PUs whose subsets are all raced.
const mostSetPUs = 4

// everySetFits returns an error if a plan has too many PUs to race all subsets.
func everySetFits(pus plans.PUSet) error {
	if len(pus) > mostSetPUs {
		return fmt.Errorf("--every-set: %d PUs have too many sets to race; restrict them by --threads %d", len(pus),
			mostSetPUs)
	}
	return nil
}

// setsOf returns all subsets of the PUs of some ranks with at least one PU in each rank, because
// only a rank's own PUs can work on its weights.
func setsOf(ranks []plans.Rank) []plans.PUSet {
	sets := []plans.PUSet{nil}
	for _, r := range ranks {
		var longer []plans.PUSet
		for _, set := range sets {
			for mask := 1; mask < 1<<len(r.PUs); mask++ {
				with := slices.Clone(set)
				for i, pu := range r.PUs {
					if mask>>i&1 == 1 {
						with = append(with, pu)
					}
				}
				slices.Sort(with)
				longer = append(longer, with)
			}
		}
		sets = longer
	}
	return sets
}

// judgeRerun compares the first arm of a rerun, the plan, with each of the others in each phase.
func (f *raceArms) judgeRerun() *Rerun {
	r := &Rerun{Rounds: math.MaxInt}
	var rows, same []gate.Row
	for _, a := range f.arms[1:] {
		for _, i := range f.served() {
			row := gate.Row{Name: a.Name, Phase: phaseNames[i], Unit: "tokens/s", Why: "raced"}
			worth := 1.0
			if len(a.on.def.Ranks) > 1 && a.on != f.arms[0].on {
				worth = f.worth()
				row.Why = fmt.Sprintf("raced; several ranks change the bits and must take less than %.2f of the time",
					worth)
			}
			row.Baseline, row.Candidate = together(a, f.arms[0], f.phaseRate(i))
			for k := range row.Baseline {
				row.Baseline[k] *= worth
			}
			r.Rounds = min(r.Rounds, len(row.Baseline))
			if a.runsAs(f.arms[0], i) {
				row.Why = "raced; it runs as the plan does"
				same = append(same, row)
			} else {
				rows = append(rows, row)
			}
		}
	}
	if len(rows)+len(same) == 0 {
		r.Rounds = 0
	}
	o := gate.Options{Ceiling: math.Inf(1), Interleaved: true}
	r.Rows, r.Same = gate.Judge(rows, o), gate.Judge(same, o)
	return r
}

// runsAs reports whether two arms run a phase with the same tables, PUs and weights.
func (c *raceArm) runsAs(o *raceArm, phase int) bool {
	x, y := c.phases[phase], o.phases[phase]
	return c.on == o.on && c.unpinned == o.unpinned && x != nil && y != nil && reflect.DeepEqual(x, y)
}

// phaseRate returns a function that computes the rate of a lap: the geometric mean over the tests
// of a phase.
func (f *raceArms) phaseRate(phase int) func(race.Lap) float64 {
	return func(l race.Lap) float64 {
		sum, n := 0.0, 0
		for k, x := range f.tests {
			if x.phase == phase {
				sum += math.Log(float64(x.n) / l.Seconds[k])
				n++
			}
		}
		return math.Exp(sum / float64(n))
	}
}

// together returns the rates of two arms in the rounds that both ran.
func together(a, b *raceArm, rate func(race.Lap) float64) (x, y []float64) {
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

// winner returns the partition of the winning plan.
func (t *tuning) winner() *partition {
	if t.won != nil {
		return t.won
	}
	return t.home
}
