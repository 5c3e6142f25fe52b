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
	guessed, right, parts := 0, 0, 0
	for seed := range manyHistories() {
		d, err := randomHistory(history{seed: seed, states: true, drafts: seed%2 == 1, copies: seed%4 == 1})
		if err != nil {
			t.Fatal(err)
		}
		all.Preemptions += d.stats().Preemptions
		all.ReusedTokens += d.stats().ReusedTokens
		all.Stops += d.stats().Stops
		guessed, right, parts = guessed+d.guessed, right+d.right, parts+d.parts
	}
	if right == 0 || right == guessed || parts == 0 {
		t.Errorf("of %d guesses that ran %d were right, %d by copied states: the test tests nothing", guessed, right,
			parts)
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
	ends := endsIn(span)
	for k, id := range table[3 : 3+ends] {
		if id != kvcache.NoState {
			content[id] = slices.Clone(text[:(span.Pos/kvcache.BlockTokens+k+1)*kvcache.BlockTokens])
		}
	}
	for k, id := range table[3+ends:] {
		content[id] = slices.Clone(text[:end-span.Draft+k+1])
	}
	return nil
}

// endsIn returns the number of ends of blocks in the rows of a span before its draft.
func endsIn(span kvcache.Span) int {
	return (span.Pos+span.Rows-span.Draft)/kvcache.BlockTokens - span.Pos/kvcache.BlockTokens
}

// keptIn returns the number of states in the draft of a span that are copied.
func (d *driver) keptIn(span kvcache.Span) int {
	for i, table := range span.Tables {
		if d.cfg.Stores[i].Kind == (kvcache.Recurrent{}) {
			return len(table) - 3 - endsIn(span)
		}
	}
	return 0
}
