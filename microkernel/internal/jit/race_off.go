//go:build !race

package jit

// Race is true under the race detector, which cannot observe accesses of generated code:
// kernels are then plain Go.
const Race = false
