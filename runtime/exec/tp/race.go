//go:build race

package tp

// RaceEnabled reports whether the race detector is compiled in. Kernels are plain Go then.
const RaceEnabled = true
