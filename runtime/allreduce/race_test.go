//go:build race

package allreduce

// raceEnabled: kernels are plain Go then.
const raceEnabled = true
