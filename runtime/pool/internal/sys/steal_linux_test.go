package sys

import (
	"testing"
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
	pus, err := AllowedPUs()
	if err != nil {
		t.Fatal(err)
	}
	var s Steal
	s.Open(ProcStat, pus[len(pus)-1])
	defer s.Close()
	first, ok := s.Read()
	if !ok {
		t.Skip("stolen time is unknown: needs Linux with /proc/stat")
	}
	if again, _ := s.Read(); again < first {
		t.Errorf("%v were stolen, and later %v", first, again)
	}
}
