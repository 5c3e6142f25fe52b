package traffic

import (
	"testing"
	"time"
)

// TestContend checks which forwards contend on memory that gives 10 GB/s to either side, for a
// model of 1 GB.
func TestContend(t *testing.T) {
	const ms = time.Millisecond
	decode := Work{Positions: 1000, Takes: 101 * ms} // 1.01 GB
	m := New(1_000_000_000, 10_000)
	if m.Contend(decode, decode) {
		t.Error("forwards contend before any was measured")
	}
	m.Learn(Cores, decode)
	if m.Contend(decode, decode) {
		t.Error("forwards contend before the device was measured")
	}
	m.Learn(Device, Work{Takes: 2000 * ms})
	for _, c := range []struct {
		name   string
		device Work
		want   bool
	}{
		{"short prompt, bound by memory", Work{Takes: 100 * ms}, true},
		{"prompt at a third of the bandwidth", Work{Takes: 300 * ms}, true},
		{"long prompt, bound by arithmetic", Work{Takes: 2000 * ms}, false},
		{"prompt after many positions", Work{Positions: 500_000, Takes: 2000 * ms}, true},
		{"unknown time", Work{Positions: 10}, false},
	} {
		if got := m.Contend(decode, c.device); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if m.Contend(Work{Takes: 1000 * ms}, Work{Takes: 120 * ms}) {
		t.Error("flows of 1 and 8.3 GB/s contend")
	}
}

// TestLearn checks that a flow that was measured too large is forgotten.
func TestLearn(t *testing.T) {
	m := New(1000, 0)
	m.Learn(Device, Work{Takes: time.Second})
	m.Learn(Cores, Work{Takes: time.Millisecond})
	one := Work{Takes: time.Second}
	if m.Contend(one, one) {
		t.Fatal("slow forwards contend")
	}
	for range 10000 {
		m.Learn(Cores, one)
	}
	if !m.Contend(one, one) {
		t.Error("a wrong measurement remains")
	}
}
