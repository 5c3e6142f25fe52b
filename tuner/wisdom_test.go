package tuner

import (
	"path/filepath"
	"testing"
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
		o.Subject.Config = &c
		if i == 1 {
			o.Run.Budget /= 2
		}
		b, err := Tune(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		trials[i] = b.Evidence.Trials
		for _, s := range b.Evidence.Searches {
			kept[i] += s.Kept
			if i == 0 && s.Cut > 0 {
				t.Errorf("%d lengths of the first model were not searched", s.Cut)
			}
		}
	}
	if trials[1] > trials[0]/4 || kept[0] != 0 || kept[1] == 0 {
		t.Errorf("%d trials, and %d for a second model; %d lengths were taken over, %d by the first", trials[0],
			trials[1], kept[1], kept[0])
	}
}
