package model

import "sandwich/plans"

// Outline writes out a model of some shape as Load does, without its weights: for whoever counts
// boundaries or bytes and has no file. Dimensions are taken as they are; it fails for an
// architecture that this program does not run.
func Outline(s plans.ModelShape) (*Model, error) {
	c := Config{Arch: s.Arch, Name: s.Name, Tied: s.Tied,
		Dims: Dims{Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
			FFN: s.FFN, Vocab: s.Vocab, Context: s.Context},
		Experts: Experts{Count: s.Experts, Used: s.ExpertsUsed, FFN: s.ExpertFFN, Shared: sharedFFN(s)},
	}
	c.pooled(s)
	return c.Model()
}

// sharedFFN is the width of what is beside the experts, 0 where nothing is.
func sharedFFN(s plans.ModelShape) int {
	for _, w := range s.Weights {
		if w.Role == shared+"up" {
			return w.N
		}
	}
	return 0
}

// pooled reads off the matrices of a shape without a head over the vocabulary what it has instead.
func (c *Config) pooled(s plans.ModelShape) {
	c.Pooling = LastPooling
	for _, w := range s.Weights {
		switch w.Role {
		case "head":
			c.Pooling = NoPooling
		case "cls":
			c.Scoring.Dense = true
		case "score":
			c.Scoring.Count = w.N
		case denseNames[0], denseNames[1]:
			c.Dense = append(c.Dense, w.N)
		}
	}
}
