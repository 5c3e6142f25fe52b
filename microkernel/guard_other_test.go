//go:build !linux

package microkernel

import (
	"testing"
	"time"
)

// guardedBytes has no guard page on this system.
func guardedBytes(_ *testing.T, n int) []byte { return make([]byte, n) }

func mapBench(_ *testing.B, n int) []byte { return make([]byte, n) }

var processStart = time.Now()

func threadTime() time.Duration { return time.Since(processStart) }
