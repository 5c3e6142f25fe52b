package plantest

import "sandwich/plans/evidence"

// Race returns the evidence of the race of one phase: the arms in the order of names, with the
// speed of each in every round.
func Race(phase, winner string, names []string, samples map[string][]float64) evidence.Evidence {
	var e evidence.Evidence
	for _, n := range names {
		name := n
		if n == winner {
			name = evidence.WinnerMark + n
		}
		e.Finalists = append(e.Finalists, evidence.Arm{Name: phase + ", " + name, Test: "pp64", Unit: "tokens/s",
			Samples: samples[n]})
	}
	return e
}

// RaceNames lists the arms of a race with one candidate.
var RaceNames = []string{evidence.ArmDefault, evidence.ArmAgain, evidence.ArmUnpinned, "tuned on PUs 0-1"}
