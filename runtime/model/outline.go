package model

import "sandwich/plans"

// Outline writes out the ops of a model of some shape as Load does, without its weights: for whoever counts boundaries and has no file. Dimensions are taken as they are; it fails for
// an architecture that this program does not run.
func Outline(s plans.ModelShape) ([]Op, error) {
	arch, err := archOf(s.Arch)
	if err != nil {
		return nil, err
	}
	b := &builder{arch: arch, m: &Model{Arch: s.Arch,
		Dims:    Dims{Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, FFN: s.FFN, Vocab: s.Vocab, Context: s.Context},
		Experts: Experts{Count: s.Experts, Used: s.ExpertsUsed, FFN: s.ExpertFFN},
	}}
	b.build()
	return b.m.Ops, b.err
}
