package tuner

import (
	"slices"
	"strings"
	"testing"

	"sandwich/plans/evidence"
	"sandwich/tuner/finals"
)

// TestRerun checks that a tuned plan runs again with every arm of its race, for the requested
// number of rounds.
func TestRerun(t *testing.T) {
	o := unhurried(tiny(t))
	o.Search.Strategy = "cost-model" // takes few trials
	var again *finals.Rerun
	o.Race.Rerun, o.Race.Reran = finals.LeastRerun, func(r *finals.Rerun) { again = r }
	b, err := Tune(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if again == nil || again.Why != "" {
		t.Fatalf("nothing ran again: %+v", again)
	}
	arms := map[string]bool{}
	for _, a := range b.Evidence.Finalists {
		if len(a.Samples) > 0 {
			_, name, _ := strings.Cut(a.Name, ", ")
			arms[strings.TrimPrefix(name, evidence.WinnerMark)] = true
		}
	}
	seen := map[string]int{}
	for _, v := range slices.Concat(again.Rows, again.Same) {
		seen[v.Name]++
		if len(v.Baseline) != o.Race.Rerun || len(v.Candidate) != o.Race.Rerun || !(v.Baseline[0] > 0) {
			t.Errorf("%s, %s: %d and %d samples", v.Name, v.Phase, len(v.Baseline), len(v.Candidate))
		}
	}
	for name := range arms {
		if seen[name] != 2 {
			t.Errorf("%s ran again in %d phases", name, seen[name])
		}
	}
	if again.Rounds != o.Race.Rerun || len(arms) == 0 || len(seen) != len(arms) {
		t.Errorf("%d rounds of %v with arms %v", again.Rounds, seen, arms)
	}
}
