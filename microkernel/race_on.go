//go:build race

package microkernel

// raceEnabled is true under the race detector, which cannot see what generated code reads and writes: kernels are then their
// plain-Go oracles.
const raceEnabled = true
