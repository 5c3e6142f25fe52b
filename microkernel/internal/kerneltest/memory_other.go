//go:build !linux

package kerneltest

import (
	"testing"
	"time"
)

// Guarded has no guard page on this system.
func Guarded(_ *testing.T, n int) []byte { return make([]byte, n) }

// Map allocates memory for benchmarks.
func Map(_ *testing.B, n int) []byte { return make([]byte, n) }

var processStart = time.Now()

// ThreadTime returns the time since the process started: this system does not report the processor
// time of a thread.
func ThreadTime() time.Duration { return time.Since(processStart) }
