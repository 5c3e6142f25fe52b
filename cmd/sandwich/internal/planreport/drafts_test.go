package planreport

import (
	"reflect"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/summary"
)

func TestDraftsText(t *testing.T) {
	got := draftsText([]evidence.Expected{{Acceptance: 0.4, Speed: 1}, {Acceptance: 0.6, Depth: 1, Speed: 1.5},
		{Acceptance: 0.8, Depth: 3, Speed: 2.25}})
	const want = "one sequence by acceptance: 1.00 times the speed at 40 %, 1.50 times the speed at 60 % (1 drafted " +
		"token per step), 2.25 times the speed at 80 % (3 drafted tokens per step)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestSpeculationRows checks how measured, interpolated and estimated times are marked.
func TestSpeculationRows(t *testing.T) {
	steps := []evidence.StepCurve{{Positions: 128, Ratios: []float64{1, 1.25, 1.5, 2}, Measured: []int{1, 3, 4}},
		{Positions: 2048, Ratios: []float64{2, 2.5, 3, 4}, Measured: []int{1, 2, 3, 4}}}
	rows := speculationRows(summary.SpeculationOf(steps, false), &plans.ModelShape{Experts: 8, ExpertsUsed: 2})
	want := [][]string{
		{"decode steps", "measured, at 128 positions: 1: 1.00, 2: 1.25*, 3: 1.50, 4: 2.00 rows (* interpolated)"},
		{"", "measured, at 2048 positions: 1: 2.00, 2: 2.50, 3: 3.00, 4: 4.00 rows"},
		{"", "expected distinct experts of 8 by rows: 1: 2, 2: 4, 4: 5"},
	}
	if len(rows) != 5 || !reflect.DeepEqual(rows[:3], want) || rows[3][0] != "speculation" ||
		!strings.HasPrefix(rows[4][1], "at 2048 positions, one sequence") {
		t.Errorf("%q", rows)
	}
	steps[0].Measured = nil
	rows = speculationRows(summary.SpeculationOf(steps[:1], true), &plans.ModelShape{})
	if len(rows) != 2 || rows[0][1] != "estimated, at 128 positions: 1: 1.00, 2: 1.25, 3: 1.50, 4: 2.00 rows" {
		t.Errorf("%q", rows)
	}
	if rows := speculationRows(nil, &plans.ModelShape{}); rows != nil {
		t.Errorf("%q", rows)
	}
}
