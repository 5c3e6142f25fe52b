package ranking

import (
	"testing"

	"sandwich/topotree"
	"sandwich/tuner/candidates"
)

// TestSeveralRanks checks that partitions near the best are raced once each, and of distant degrees
// only those adjacent to the best's.
func TestSeveralRanks(t *testing.T) {
	ranked := func(tp int, first int, score float64) *Ranked {
		c := &candidates.Config{}
		for i := range tp {
			c.Ranks = append(c.Ranks, candidates.Rank{PUs: topotree.NewCPUSet(first + i)})
		}
		return &Ranked{Config: c, Score: score}
	}
	r := &Ranking{Ranked: []*Ranked{ranked(1, 0, 1), ranked(2, 0, 0.99), ranked(2, 0, 0.98), ranked(2,
		5, 0.97),
		ranked(8, 0, 0.9), ranked(4, 0, 0.5)}}
	got := r.SeveralRanks(3)
	if len(got) != 1 || got[0] != r.Ranked[1] {
		t.Errorf("%d of the first three", len(got))
	}
	if got = r.SeveralRanks(10); len(got) != 3 || got[2] != r.Ranked[4] {
		t.Errorf("%d of all: what is far behind is not raced", len(got))
	}
	r.Ranked[0], r.Ranked[4] = r.Ranked[4], r.Ranked[0]
	r.Ranked[0].Score, r.Ranked[4].Score = 1, 0.9
	if got = r.SeveralRanks(1); len(got) != 1 || got[0].Config.TP() != 8 {
		t.Errorf("the best first: %+v", got)
	}
}
