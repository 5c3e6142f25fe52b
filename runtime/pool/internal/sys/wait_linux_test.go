package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseWait(t *testing.T) {
	for text, want := range map[string]struct{ ran, waited time.Duration }{
		"120 7 3\n": {120, 7}, "0 0 0": {}, "": {-1, 0}, "12": {-1, 0}, "x 7 3": {-1, 0}, "5 -7 3": {-1, 0},
		"99999999999999999999 1 1": {-1, 0},
	} {
		ran, waited, ok := parseWait([]byte(text))
		if ok != (want.ran >= 0) || ok && (ran != want.ran || waited != want.waited) {
			t.Errorf("%q: %d, %d, %v; want %+v", text, ran, waited, ok, want)
		}
	}
}

// TestStealFollowsTheWorker reads the line of the PU to which a worker was moved.
func TestStealFollowsTheWorker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stat")
	says := func(of0, of1 int) {
		t.Helper()
		text := fmt.Sprintf("cpu0 0 0 0 0 0 0 0 %d 0 0\ncpu1 0 0 0 0 0 0 0 %d 0 0\n", of0, of1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var s Steal
	says(500, 10)
	s.Open(path, 0)
	defer s.Close()
	s.Follow(1)
	says(900, 30)
	if got := s.Since(time.Second); got != 200*time.Millisecond {
		t.Errorf("%v were taken of the PU of the worker, want 200ms", got)
	}
	s.Follow(1)
	says(900, 50)
	if got := s.Since(2 * time.Second); got != 200*time.Millisecond {
		t.Errorf("then %v, want 200ms", got)
	}
}
