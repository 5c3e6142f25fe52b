//go:build !race

package allreduce

const raceEnabled = false
