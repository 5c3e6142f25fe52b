package engine

import "sandwich/runtime/api"

// Sampler draws tokens as an engine does, without a model, for benchmarks.
type Sampler struct {
	sampler *sampler
	buffer  *sampleBuffer
}

// NewSampler returns a sampler over a vocabulary of vocab tokens. vec holds the vector kernels
// (microkernel.Vec).
func NewSampler(vec rowMath, vocab int, s api.Sampling) *Sampler {
	return &Sampler{newSampler(s, nil), newSampleBuffer(vec, vocab)}
}

// Draw returns a token drawn from a row of logits as wide as the vocabulary. allowed has a bit for
// each allowed token, as api.Constraint.Allowed returns it; nil allows all. The row is not changed.
func (d *Sampler) Draw(logits []float32, allowed []uint64) int32 {
	return d.sampler.next(logits, allowed, d.buffer)
}
