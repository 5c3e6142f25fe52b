package sched

import (
	"fmt"
	"slices"
	"testing"

	"sandwich/runtime/kvcache"
)

// TestRandomHistoriesOfStates is TestRandomHistories with recurrent states, which halts,
// preemptions and drafts must not change.
func TestRandomHistoriesOfStates(t *testing.T) {
	var all Stats
	guessed, right := 0, 0
	for seed := range manyHistories() {
		d, err := randomHistory(history{seed: seed, states: true, drafts: seed%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		all.Preemptions += d.stats().Preemptions
		all.ReusedTokens += d.stats().ReusedTokens
		all.Stops += d.stats().Stops
		guessed, right = guessed+d.guessed, right+d.right
	}
	if right == 0 || right == guessed {
		t.Errorf("of %d guesses that ran %d were right: the test tests nothing", guessed, right)
	}
	if all.Preemptions == 0 || all.ReusedTokens == 0 || all.Stops == 0 {
		t.Errorf("no sequence was preempted, shared blocks or halted: %+v", all)
	}
}

// checkState is checkTable of a recurrent store: a forward reads the state of the text before it,
// and a halted one continues from its own state.
func (d *driver) checkState(content [][]int32, table []kvcache.BlockID, span kvcache.Span, text []int32) error {
	from, to, end := table[0], table[1], span.Pos+span.Rows
	if from == kvcache.NoState != (span.Pos == 0) {
		return fmt.Errorf("position %d goes on from block %d", span.Pos, from)
	}
	halted := from == to && slices.Equal(content[to], text[:end])
	if from != kvcache.NoState && !halted && !slices.Equal(content[from], text[:span.Pos]) {
		return fmt.Errorf("position %d goes on from the state of another text", span.Pos)
	}
	content[to] = slices.Clone(text[:end])
	if before := table[2]; before != kvcache.NoState {
		content[before] = slices.Clone(text[:end-span.Draft])
	}
	for k, id := range table[3:] {
		if id != kvcache.NoState {
			content[id] = slices.Clone(text[:(span.Pos/kvcache.BlockTokens+k+1)*kvcache.BlockTokens])
		}
	}
	return nil
}
