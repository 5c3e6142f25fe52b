package compare

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// host returns the profile of this machine.
func host(t *testing.T) *profiles.Profile {
	t.Helper()
	p, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompareStrategies(t *testing.T) {
	o := Options{Profile: host(t), Key: plans.WeightKey{N: 192, K: 128, Type: "q4_0"}, MaxM: 32,
		Sigmas: []int{2, 16}}
	o.Run.Budget, o.PerM = 200*time.Millisecond, 50*time.Millisecond
	rows, err := Searches(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"default", "sandwich", "sandwich", "scale-up", "cost-model", "random", "exhaustive", "static"}
	if len(rows) != len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	best := 0.0
	for i, r := range rows {
		best = max(best, r.OfBest)
		if r.Strategy != want[i] || r.GFLOPS <= 0 || r.OfBest <= 0 || r.OfBest > 1 || r.Rules == 0 ||
			r.OfExhaustive <= 0 {
			t.Errorf("row %d: %+v", i, r)
		}
		if search.PerShape(r.Strategy) != (r.AllM > r.Seconds) {
			t.Errorf("row %d: %v s for the held-out m, %v s for all", i, r.Seconds, r.AllM)
		}
	}
	if best != 1 {
		t.Errorf("no row is the best of them, %v", best)
	}
	o.Strategies = []string{"magic"}
	if _, err := Searches(context.Background(), o); err == nil {
		t.Error("an unknown strategy is not refused")
	}
	o.Strategies, o.HeldOut = nil, []int{33}
	if _, err := Searches(context.Background(), o); err == nil {
		t.Error("an m beyond the largest is not refused")
	}
}

// TestCompareGoesOn checks that a comparison repeats no trial of its journal when a strategy is
// added, and that it rejects the journal of another seed. The budget is never used up, so that a
// busy machine makes the same trials.
func TestCompareGoesOn(t *testing.T) {
	o := Options{Profile: host(t), Key: plans.WeightKey{N: 192, K: 128, Type: "q4_0"}, MaxM: 8,
		Strategies: []string{"cost-model"}}
	o.Run.Budget, o.Effort, o.Run.Journal = time.Hour, "quick", filepath.Join(t.TempDir(), "search.journal")
	count := func() int {
		t.Helper()
		if _, err := Searches(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(o.Run.Journal)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), "for cost-model")
	}
	n := count()
	o.Strategies = []string{"scale-up", "cost-model"}
	if again := count(); n == 0 || again != n {
		t.Errorf("%d trials, and %d after the second run", n, again)
	}
	o.Run.Seed++
	if _, err := Searches(context.Background(), o); !errors.Is(err, trials.ErrJournal) {
		t.Errorf("another seed: %v", err)
	}
}
