package plans

import (
	"cmp"
	"slices"
)

// Place is how an arm came out of the race of a phase.
type Place struct {
	Arm    string `json:"arm"`
	Over   Gain   `json:"over_default"`
	Behind Gain   `json:"behind_winner"` // how much faster than this arm the one ran that entered the plan
	// the difference to the one that entered the plan is no more than two equal arms show; the one
	// that entered has none, and nobody knows it of one that never ran in a round with it
	Noise bool  `json:"noise"`
	Tests []Arm `json:"tests"`
}

// Compared says whether an arm ran in a round with the one that entered the plan: two candidates do
// not where memory held the default and one of them at a time.
func (p *Place) Compared() bool { return p.Behind.Rounds > 0 }

// Places are the arms of the race of a phase: the one that entered the plan first, the others by
// their gain over the default; noise is what two equal arms may differ by. Without a race, or where
// nobody says which arm entered the plan, there are none.
func (e *Evidence) Places(phase string) (out []Place, noise float64) {
	names, arms := e.Race(phase)
	winner := ""
	for _, o := range e.Outcomes() {
		if o.Phase == phase {
			winner, noise = o.Arm, o.Noise
		}
	}
	if len(arms[winner]) == 0 {
		return nil, 0
	}
	for _, name := range names {
		p := Place{Arm: name, Over: Over(arms, name), Tests: arms[name]}
		if name != winner {
			p.Behind = between(arms, name, winner)
			slower := p.Behind.Median < -noise && p.Behind.High < 0 // what won is: unpinned threads cannot enter
			p.Noise = p.Compared() && !slower && !p.Behind.Beats(noise)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Place) int {
		if (a.Arm == winner) != (b.Arm == winner) {
			return map[bool]int{true: -1, false: 1}[a.Arm == winner]
		}
		return cmp.Compare(b.Over.Median, a.Over.Median)
	})
	return out, noise
}

// RunnerUp is the best arm of some places that could have entered the plan in the place of the
// first; nil where there is none.
func RunnerUp(places []Place) *Place {
	for i := range places {
		if i > 0 && places[i].Arm != ArmAgain && places[i].Arm != ArmUnpinned {
			return &places[i]
		}
	}
	return nil
}
