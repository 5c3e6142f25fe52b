//go:build !race

package jit

// Race is true under the race detector, which cannot see what generated code reads and writes: kernels are then their
// plain-Go oracles.
const Race = false
