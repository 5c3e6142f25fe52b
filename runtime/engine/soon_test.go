package engine

import (
	"testing"
	"time"
)

// Tests run on busy machines with slow disks, where a limit of seconds may pass without a fault.
func init() {
	deviceTimeout = 5 * time.Minute
	flushTime = 2 * time.Minute
}

// soon waits until a condition holds and reports whether it did before a deadline that a machine
// which is only busy does not miss.
func soon(t testing.TB, holds func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
