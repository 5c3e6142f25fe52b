package engine

import (
	"testing"

	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/gguf"
	"sandwich/runtime/speculate"
)

// TestCopiesStates checks the choice between copies of states and tokens that are computed again.
func TestCopiesStates(t *testing.T) {
	steps := []float64{1, 1.04, 1.08} // a row takes 0.04 s
	for _, c := range []struct {
		back    drafting.Rollback
		seconds float64
		want    bool
	}{
		{drafting.RollbackByCost, 0.009, true}, {drafting.RollbackByCost, 0.011, false},
		{drafting.RollbackCopy, 1, true}, {drafting.RollbackReplay, 0, false},
	} {
		if got := copiesStates(c.back, steps, c.seconds); got != c.want {
			t.Errorf("rollback %d, %g s per copy: copies %v", c.back, c.seconds, got)
		}
	}
	if copiesStates(drafting.RollbackByCost, []float64{1}, 0) {
		t.Error("states are copied for steps of one row")
	}
}

// TestDraftStates checks that memory for states in drafts is reserved only for a drafter and if it
// is to copy them.
func TestDraftStates(t *testing.T) {
	blocks := func(o drafting.Options) int {
		e := draftOptions(t, "lfm2", gguf.F32, nil)
		e.Speculation = o
		return open(t, e).Runner().Assembly().Copies()
	}
	none := blocks(drafting.Options{})
	ngram := speculate.NewNGram(1 << 10)
	for _, c := range []struct {
		o    drafting.Options
		more bool
	}{
		{drafting.Options{Drafter: ngram}, true}, {drafting.Options{Rollback: drafting.RollbackCopy}, true},
		{drafting.Options{Drafter: ngram, Rollback: drafting.RollbackReplay}, false},
	} {
		if got := blocks(c.o); got > none != c.more {
			t.Errorf("%+v: memory for %d states, %d without drafts", c.o, got, none)
		}
	}
}
