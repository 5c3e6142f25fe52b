package shortlist

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sandwich/plans/evidence"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/race"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
)

// TestHopeful checks which partitions get tables, and that the reason of each other one states what
// was measured of it.
func TestHopeful(t *testing.T) {
	r := &arms.Race{}
	add := func(name string, seconds float64, rounds int) *arms.Arm {
		a := &arms.Arm{Contender: race.Contender{Name: name}, On: &partition.Partition{Name: name}}
		for i := range rounds {
			a.Laps = append(a.Laps, race.Lap{Round: i, Seconds: []float64{seconds}})
		}
		r.Arms = append(r.Arms, a)
		return a
	}
	add("default", 1, 6)
	add("unpinned", 1, 6)
	failed := add("failed", 1, 0)
	failed.On.Failed = errors.New("it needs 3 GiB")
	failed.Lost = failed.On.Failed.Error()
	add("fast", 0.5, 6)
	add("second", 0.6, 6)
	add("slow", 2, 6)
	add("stopped", 0.7, 6).Lost = "significantly slower than fast"
	add("short", 0.9, 1)
	in := Input{Run: run.New(run.Options{}), Effort: search.Quick}
	out := in.hopeful(r)
	if len(out) != 1 || out[0].Name != "fast" {
		t.Errorf("%d partitions are hopeful", len(out))
	}
	for name, want := range map[string]string{"failed": "it needs 3 GiB", "second": "effort quick",
		"slow": "2.00 times as long", "stopped": "than fast", "short": "in 1 rounds: the budget"} {
		i := slices.IndexFunc(in.Run.Rejected, func(x evidence.Rejected) bool { return x.Candidate == name })
		if i < 0 || !strings.Contains(in.Run.Rejected[i].Reason, want) ||
			name == "failed" && in.Run.Rejected[i].Reason != want {
			t.Errorf("%s: %+v", name, in.Run.Rejected)
		}
	}
}
