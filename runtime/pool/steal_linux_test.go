package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseSteal(t *testing.T) {
	const text = "cpu  9 9 9 9 9 9 9 999 0 0\ncpu1 1 2 3 4 5 6 7 88 9 0\ncpu10 1 2 3 4 5 6 7 33 9 0\nintr 5\n"
	for name, want := range map[string]int64{"cpu1 ": 880, "cpu10 ": 330} {
		if d, ok := parseSteal([]byte(text), []byte(name)); !ok || d.Milliseconds() != want {
			t.Errorf("%q: %v, %v, want %d ms", name, d, ok, want)
		}
	}
	for _, text := range []string{"", "\n", "cpu1", "cpu1 ", "cpu1 1 2 3 4 5 6 7\n", "cpu1 1 2 3 4 5 6 7 x 9\n",
		"cpu1 1 2 3 4 5 6 7 -8 9\n", "cpu1 1 2 3 4 5 6 7 9999999999999 9\n", "cpu10 1 2 3 4 5 6 7 8 9\n"} {
		if d, ok := parseSteal([]byte(text), []byte("cpu1 ")); ok {
			t.Errorf("%q was read as %v", text, d)
		}
	}
}

// The real file has a line for a worker's PU, which the buffer reaches, and its number never falls.
func TestStolenTimeNeverFalls(t *testing.T) {
	pus, err := allowedPUs()
	if err != nil {
		t.Fatal(err)
	}
	var s steal
	s.open(procStat, pus[len(pus)-1])
	defer s.close()
	first, ok := s.read()
	if !ok {
		t.Skip("this kernel keeps no account of stolen time")
	}
	if again, _ := s.read(); again < first {
		t.Errorf("%v were stolen, and later %v", first, again)
	}
}

// A worker is at risk where a hypervisor takes a good part of its PU, be it that the kernel of the
// guest never let another thread have it; a hundredth, or what was taken before, does not count.
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
		w.steal.open(path, 1)
		for now := 200 * time.Millisecond; now < 2*time.Second; now += 200 * time.Millisecond {
			taken += test.each
			says(taken)
			w.suspect(now, 0)
			w.suspect(now+time.Millisecond, 0) // too soon to ask again
		}
		if w.steal.close(); w.riskUntil > 0 != test.atRisk {
			t.Errorf("%s is taken: at risk until %v", test.name, w.riskUntil)
		}
	}
}
