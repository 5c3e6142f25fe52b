package microkernel

import "sandwich/microkernel/internal/kernel"

// Form is how a kernel takes its operands, by which tests pick specs.
type Form = kernel.Form

// The forms.
const (
	Load    = kernel.Load
	Embed   = kernel.Embed
	Lane    = kernel.Lane
	Outer   = kernel.Outer
	Overlap = kernel.Overlap
)
