//go:build race

package exec

// raceEnabled: kernels are plain Go then.
const raceEnabled = true
