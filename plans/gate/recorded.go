package gate

import (
	"strings"

	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
)

// Recorded returns rows of the samples in the evidence of two bundles: those of the arms that
// entered the plans, for tests that both races ran. The samples are not interleaved, so
// Options.Interleaved must be false for them.
func Recorded(a, b *bundle.Bundle) (rows []Row) {
	for _, p := range phase.All {
		x, xNoise := winner(&a.Evidence, p.String())
		y, yNoise := winner(&b.Evidence, p.String())
		for _, base := range x {
			for _, arm := range y {
				if arm.Test != base.Test || arm.Unit != base.Unit {
					continue
				}
				rows = append(rows, Row{Name: base.Test, Phase: p.String(), Unit: base.Unit, Why: "recorded",
					Baseline: base.Samples, Candidate: arm.Samples,
					Recorded: max(xNoise[base.Test], yNoise[base.Test])})
			}
		}
	}
	return rows
}

// winner returns the tests of the arm that entered the plan, and for each test the largest
// difference of the two equal arms of the race.
func winner(e *evidence.Evidence, phase string) (tests []evidence.Arm, spread map[string]float64) {
	_, arms := e.Race(phase)
	spread = map[string]float64{}
	for _, x := range arms[evidence.ArmDefault] {
		for _, y := range arms[evidence.ArmAgain] {
			if x.Test == y.Test {
				spread[x.Test] = ratio(rounds(x.Samples), rounds(y.Samples), true).maxDeviation()
			}
		}
	}
	for _, a := range e.Finalists {
		if strings.HasPrefix(a.Name, phase+", "+evidence.WinnerMark) {
			tests = append(tests, a)
		}
	}
	return tests, spread
}
