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
	o := tiny(t)
	o.Search.Wisdom = filepath.Join(t.TempDir(), "wisdom-a-b.jsonl")
	o.Subject.Plan.Threads = 1 // otherwise noise may select different sets of PUs, which share no table
	trials, kept := [2]int{}, [2]int{}
	for i := range trials {
		c := *o.Subject.Config
		c.Layers += i
		o.Subject.Config, o.Run.Budget = &c, []time.Duration{3 * time.Second, 1500 * time.Millisecond}[i]
		b := tuneUntil(t, o, func(b *bundle.Bundle) bool { return len(b.Evidence.Searches) > 0 })
		trials[i] = b.Evidence.Trials
		for _, s := range b.Evidence.Searches {
			kept[i] += s.Kept
			if i == 0 && s.Cut > 0 {
				t.Skip("this machine is too busy to search all lengths of the first model")
			}
		}
	}
	if trials[1] > trials[0]/4 || kept[0] != 0 || kept[1] == 0 {
		t.Errorf("%d trials, and %d for a second model; %d lengths were taken over, %d by the first", trials[0],
			trials[1], kept[1], kept[0])
	}
}
