package sysfs

import (
	"runtime"
	"testing"
)

// TestLive reads the machine that runs the test: whatever it is, the tree must be sound and this
// process must be allowed somewhere.
func TestLive(t *testing.T) {
	m, err := ReadLive()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Tree.Check(); err != nil {
		t.Error(err)
	}
	if got := m.Allowed.Count(); got != runtime.NumCPU() {
		t.Errorf("allowed = %q, the Go runtime was started on %d CPUs", m.Allowed, runtime.NumCPU())
	}
	if u, err := m.Usable(); err != nil || !u.CPUs().In(m.Allowed) {
		t.Errorf("usable tree %v, allowed %s, error %v", u.CPUs(), m.Allowed, err)
	}
	t.Logf("%+v", m.Summary())
}
