package planreport

import (
	"testing"

	"sandwich/plans/evidence"
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
