package plantest

import "sandwich/plans"

// Llama160M returns the shape of llama-160m, a small model with an untied head, with all weights of
// one type.
func Llama160M(typ string) plans.ModelShape {
	weight := func(role string, n, k, count int) plans.WeightShape {
		return plans.WeightShape{Role: role, N: n, K: k, Type: typ, Count: count}
	}
	return plans.ModelShape{
		Arch: "llama", Name: "llama-160m", Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072,
		Vocab: 32000, Context: 2048,
		Weights: []plans.WeightShape{
			weight("embed", 32000, 768, 1), weight("q", 768, 768, 12), weight("k", 768, 768, 12),
			weight("v", 768, 768, 12), weight("o", 768, 768, 12), weight("gate", 3072, 768, 12),
			weight("up", 3072, 768, 12), weight("down", 768, 3072, 12), weight("head", 32000, 768, 1),
		},
	}
}
