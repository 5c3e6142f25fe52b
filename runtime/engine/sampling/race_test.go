//go:build race

package sampling

// raceEnabled: kernels are plain Go then, and only small models are quick enough.
const raceEnabled = true
