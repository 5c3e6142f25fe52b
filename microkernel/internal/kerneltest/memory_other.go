//go:build !linux

package kerneltest

import (
	"testing"
	"time"
)

// Guarded has no guard page on this system.
func Guarded(_ *testing.T, n int) []byte { return make([]byte, n) }
func Map(_ *testing.B, n int) []byte     { return make([]byte, n) }

var processStart = time.Now()

func ThreadTime() time.Duration { return time.Since(processStart) }
