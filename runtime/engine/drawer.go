package engine

import "sandwich/runtime/api"

// Drawer draws tokens as an engine does, without a model: benches time it.
type Drawer struct {
	sampler *sampler
	draft   *draft
}

// NewDrawer draws from a vocabulary with vector kernels (microkernel.Vec).
func NewDrawer(vec rowMath, vocab int, s api.Sampling) *Drawer {
	return &Drawer{newSampler(s, nil), newDraft(vec, vocab)}
}

// Draw is the token of a row of logits as wide as the vocabulary; allowed is as
// api.Constraint.Allowed gives it, nil for all tokens. The row stays as it is.
func (d *Drawer) Draw(logits []float32, allowed []uint64) int32 {
	return d.sampler.next(logits, allowed, d.draft)
}
