package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStolenTimePutsAWorkerAtRisk checks that a worker is at risk if a hypervisor takes a good part
// of its PU, even if no other thread of the guest had it. A hundredth, or time taken before, does
// not count.
func TestStolenTimePutsAWorkerAtRisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stat")
	says := func(hundredths int) {
		t.Helper()
		text := fmt.Sprintf("cpu  0 0 0 0 0 0 0 7 0 0\ncpu1 1 2 3 4 5 6 7 %d 0 0\n", hundredths)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		each   int // hundredths of a second, of every fifth of one
		atRisk bool
	}{{"nothing", 0, false}, {"a 20th", 1, false}, {"a fifth", 4, true}, {"half", 10, true}} {
		w := waiter{pool: &Pool{}, spin: time.Millisecond}
		taken := 90_000
		says(taken)
		w.pu.Store(1)
		w.steal.Open(path, 1)
		for now := 200 * time.Millisecond; now < 2*time.Second; now += 200 * time.Millisecond {
			taken += test.each
			says(taken)
			w.suspect(now, 0)
			w.suspect(now+time.Millisecond, 0) // too soon to ask again
		}
		if w.steal.Close(); w.riskUntil > 0 != test.atRisk {
			t.Errorf("%s is taken: at risk until %v", test.name, w.riskUntil)
		}
	}
}
