package plans

import (
	"strings"
	"testing"
)

func TestPartition(t *testing.T) {
	s := ModelShape{Hidden: 2048, Heads: 32, KVHeads: 4, HeadDim: 64, FFN: 5632, Vocab: 32000, Weights: []WeightShape{
		{Role: "o", N: 2048, K: 2048, Type: "q8_0", Count: 22}, {Role: "down", N: 2048, K: 5632,
			Type: "q8_0", Count: 22},
	}}
	k := s
	k.Weights = []WeightShape{{Role: "o", N: 2048, K: 2048, Type: "q4_k", Count: 22}, {Role: "down", N: 2048, K: 5632,
		Type: "q8_0", Count: 22}}
	narrow := s
	narrow.FFN = 96
	experts := narrow
	experts.Experts, experts.ExpertFFN = 8, 1024
	for _, c := range []struct {
		shape ModelShape
		ranks int
		want  string // "" fits
	}{
		{s, 1, ""}, {s, 8, ""}, {s, 5, ""}, {s, 32, ""},
		{s, 48, "the model has 32 heads"},
		{s, 0, "at least one"},
		{k, 8, ""},
		{k, 9, "32 heads can be cut in 7 places only"},
		{narrow, 3, ""},
		{narrow, 4, "the ffn width 96 has 3 blocks of 32"},
		{experts, 32, ""},
	} {
		err := c.shape.Partition(c.ranks)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d ranks: %v, want %q", c.ranks, err, c.want)
		}
	}
}
