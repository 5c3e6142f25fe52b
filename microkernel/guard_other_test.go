//go:build !linux

package microkernel

import "testing"

// guardedBytes has no guard page on this system.
func guardedBytes(_ *testing.T, n int) []byte { return make([]byte, n) }
