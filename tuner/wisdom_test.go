package tuner

import (
	"path/filepath"
	"testing"
	"time"

	"sandwich/plans/bundle"
)

// TestSecondModelSearchesLittle checks that a second model with matrices of the same shapes reuses
// the kernels of the first if these were searched as long as it would search.
func TestSecondModelSearchesLittle(t *testing.T) {
	var first, second searched
	// On a busy machine the first search may get less time than the second one would take.
	for budget := 3 * time.Second; budget < 2*time.Minute; budget *= 4 {
		first, second = searchTwice(t, budget)
		if first.cut == 0 && first.kept == 0 && second.kept > 0 && second.trials <= first.trials/4 {
			return
		}
	}
	t.Errorf("the first model: %+v; the second: %+v, want at most a quarter of the trials", first, second)
}

// searched counts the trials of a tuning run, the lengths that it took over from an earlier run,
// and those for which the budget did not suffice.
type searched struct{ trials, kept, cut int }

// searchTwice tunes a model with a budget, and another one with matrices of the same shapes with
// half of it. They share the results of kernel searches.
func searchTwice(t *testing.T, budget time.Duration) (first, second searched) {
	t.Helper()
	o := tiny(t)
	o.Search.Wisdom = filepath.Join(t.TempDir(), "wisdom-a-b.jsonl")
	o.Subject.Plan.Threads = 1 // otherwise noise may select different sets of PUs, which share no table
	run := func() (s searched) {
		b := tuneUntil(t, o, func(b *bundle.Bundle) bool { return len(b.Evidence.Searches) > 0 })
		s.trials = b.Evidence.Trials
		for _, x := range b.Evidence.Searches {
			s.kept += x.Kept
			s.cut += x.Cut
		}
		return s
	}
	o.Run.Budget = budget
	first = run()
	c := *o.Subject.Config
	c.Layers++
	o.Subject.Config, o.Run.Budget = &c, budget/2
	return first, run()
}
