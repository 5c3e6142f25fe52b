package gate

import (
	"strings"

	"sandwich/plans"
	"sandwich/runtime/phase"
)

// Recorded makes rows of the samples that two bundles carry: of the arms that entered the plans, in
// tests that both were measured in, each when its plan was tuned. They were not interleaved, so
// that Options.Interleaved is false for them.
func Recorded(a, b *plans.Bundle) (rows []Row) {
	for _, p := range phase.All {
		x, again := winner(&a.Evidence, p.String())
		y, and := winner(&b.Evidence, p.String())
		for _, base := range x {
			for _, arm := range y {
				if arm.Test != base.Test || arm.Unit != base.Unit {
					continue
				}
				rows = append(rows, Row{Name: base.Test, Phase: p.String(), Unit: base.Unit, Why: "recorded",
					Baseline: base.Samples, Candidate: arm.Samples,
					Recorded: max(again[base.Test], and[base.Test])})
			}
		}
	}
	return rows
}

// winner is the tests of the arm that entered the plan, and by test how far the two equal arms of
// that race lay apart.
func winner(e *plans.Evidence, phase string) (tests []plans.Arm, spread map[string]float64) {
	_, arms := e.Race(phase)
	spread = map[string]float64{}
	for _, x := range arms[plans.ArmDefault] {
		for _, y := range arms[plans.ArmAgain] {
			if x.Test == y.Test {
				spread[x.Test] = ratio(rounds(x.Samples), rounds(y.Samples), true).far()
			}
		}
	}
	for _, a := range e.Finalists {
		if strings.HasPrefix(a.Name, phase+", "+plans.WinnerMark) {
			tests = append(tests, a)
		}
	}
	return tests, spread
}
