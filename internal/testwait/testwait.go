// Package testwait waits for events in tests.
package testwait

import (
	"testing"
	"time"
)

// patience is the time after which a function counts as blocked, however slow the machine is.
const patience = time.Minute

// Returns calls f and returns its error. It fails the test if f does not return.
func Returns(t testing.TB, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatalf("%s does not return", what)
		return nil
	}
}
