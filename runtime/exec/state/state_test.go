package state

import (
	"slices"
	"testing"

	"sandwich/runtime/kvcache"
)

// TestDivide checks the segments of sequences with and without checkpoints, and their offsets.
func TestDivide(t *testing.T) {
	const no, block = kvcache.NoState, kvcache.BlockTokens
	table := func(ids ...kvcache.BlockID) kvcache.Tables { return kvcache.Tables{ids} }
	for name, test := range map[string]struct {
		spans   []kvcache.Span
		want    []segment
		offsets []int
	}{
		"one row of a new sequence": {
			[]kvcache.Span{{Rows: 1, Tables: table(no, 3, no)}},
			[]segment{{n: 1, from: no, to: 3, keep: no}}, []int{0, 1}},
		"a checkpoint inside": {
			[]kvcache.Span{{Rows: block + 10, Pos: 5, Tables: table(1, 2, no, 7)}},
			[]segment{{n: block - 5, from: 1, to: 2, keep: 7, more: true},
				{row: block - 5, n: 15, from: 2, to: 2, keep: no}},
			[]int{0, 2}},
		"a checkpoint at the end": {
			[]kvcache.Span{{Rows: block, Tables: table(no, 2, no, 7)}},
			[]segment{{n: block, from: no, to: 2, keep: 7}}, []int{0, 1}},
		"a block without a checkpoint": {
			[]kvcache.Span{{Rows: 2 * block, Tables: table(2, 2, no, no, 9)}},
			[]segment{{n: 2 * block, from: 2, to: 2, keep: 9}}, []int{0, 1}},
		"two sequences": {
			[]kvcache.Span{{Rows: 1, Pos: 8, Tables: table(4, 4, no)}, {Row: 1, Rows: 2, Tables: table(no, 5, no)}},
			[]segment{{n: 1, from: 4, to: 4, keep: no}, {row: 1, n: 2, from: no, to: 5, keep: no}}, []int{0, 1, 2}},
		"a draft": {
			[]kvcache.Span{{Rows: 4, Pos: 8, Draft: 3, Tables: table(4, 6, 4)}},
			[]segment{{n: 1, from: 4, to: 6, keep: 4, more: true}, {row: 1, n: 3, from: 6, to: 6, keep: no}},
			[]int{0, 2}},
		"a draft after a checkpoint": {
			[]kvcache.Span{{Rows: 4, Pos: block - 1, Draft: 3, Tables: table(4, 6, 4, 9)}},
			[]segment{{n: 1, from: 4, to: 6, keep: 9, more: true}, {row: 1, from: 6, to: 6, keep: 4, more: true},
				{row: 1, n: 3, from: 6, to: 6, keep: no}}, []int{0, 3}},
	} {
		got := divide(nil, test.spans, 0)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: segments %+v; want %+v", name, got, test.want)
		}
		if offsets := sequenceOffsets(nil, got); !slices.Equal(offsets, test.offsets) {
			t.Errorf("%s: offsets %v; want %v", name, offsets, test.offsets)
		}
	}
}
