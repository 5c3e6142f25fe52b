//go:build race

package sched

// histories is smaller under the race detector, which makes each one twenty
// times slower and finds nothing in code that starts no goroutine.
const histories = 1_200
