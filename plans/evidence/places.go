package evidence

import (
	"cmp"
	"slices"
)

// Place is the result of one arm in the race of a phase.
type Place struct {
	Arm    string `json:"arm"`
	Over   Gain   `json:"over_default"`
	Behind Gain   `json:"behind_winner"` // gain of the arm that entered the plan over this arm
	// The difference to the arm that entered the plan is within noise. It is false for that arm
	// itself and for arms that share no round with it.
	Noise bool  `json:"noise"`
	Tests []Arm `json:"tests"`
}

// Compared reports whether an arm ran in a round together with the arm that entered the plan. Two
// candidates do not if memory held only the default and one of them at a time.
func (p *Place) Compared() bool { return p.Behind.Rounds > 0 }

// Places returns the arms of the race of a phase: the arm that entered the plan first, the others
// by their gain over the default. noise is the largest difference of two equal arms. The result is
// nil without a race or a marked winner.
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
			// faster than the winner: unpinned threads cannot enter a plan
			slower := p.Behind.Median < -noise && p.Behind.High < 0
			p.Noise = p.Compared() && !slower && !p.Behind.Beats(noise)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Place) int {
		switch winner {
		case a.Arm:
			return -1
		case b.Arm:
			return 1
		}
		return cmp.Compare(b.Over.Median, a.Over.Median)
	})
	return out, noise
}

// RunnerUp returns the best arm after the first that could have entered the plan, or nil.
func RunnerUp(places []Place) *Place {
	for i := range places {
		if i > 0 && places[i].Arm != ArmAgain && places[i].Arm != ArmUnpinned {
			return &places[i]
		}
	}
	return nil
}
