package service

import (
	"slices"
	"testing"

	"sandwich/plans"
	"sandwich/profiles"
)

func TestRankCounts(t *testing.T) {
	p, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	shape := plans.ModelShape{Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 11008, Vocab: 32000}
	few := shape
	few.Heads, few.KVHeads = 6, 2
	for _, c := range []struct {
		shape plans.ModelShape
		want  []int
	}{{shape, []int{4, 8}}, {few, []int{4}}} { // four packages, eight nodes
		if got := RankCounts(p, c.shape); !slices.Equal(got, c.want) {
			t.Errorf("%d heads: %v, want %v", c.shape.Heads, got, c.want)
		}
	}
}
