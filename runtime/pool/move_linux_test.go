package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestMove binds a worker to another PU while it serves; what Places binds again is the new one,
// and a PU that is refused changes nothing.
func TestMove(t *testing.T) {
	p := open(t, 2, Options{Pin: true})
	pus := p.PUs()
	if pus[0] == pus[1] {
		t.Skip("needs two PUs")
	}
	where := func() (got [2]int) {
		p.Run(func(w *Worker) {
			mask, err := allowedPUs()
			if err != nil || !slices.Equal(mask, []int{w.PU()}) {
				t.Errorf("worker %d is on PU %d and may run on %v: %v", w.ID(), w.PU(), mask, err)
			}
			got[w.ID()] = w.PU()
		})
		return got
	}
	if err := p.Move(0, pus[1]); err != nil {
		t.Fatal(err)
	}
	if got := where(); got != [2]int{pus[1], pus[1]} {
		t.Errorf("after the move the workers are on %v", got)
	}
	places, err := p.Places()
	if err != nil || len(places.Lost) > 0 || !slices.Equal(places.At, []int{pus[1], pus[1]}) {
		t.Errorf("places %+v, %v", places, err)
	}
	if err := p.Move(0, 99999); err == nil {
		t.Error("a PU that does not exist was taken")
	}
	if err := p.Move(0, pus[0]); err != nil {
		t.Fatal(err)
	}
	if got := where(); got != [2]int{pus[0], pus[1]} || !slices.Equal(p.PUs(), pus) {
		t.Errorf("moved back the workers are on %v, and the pool is of %v", got, p.PUs())
	}
	if err := open(t, 1, Options{}).Move(0, pus[0]); err == nil {
		t.Error("a worker that is bound to nothing was moved")
	}
}

func TestWaits(t *testing.T) {
	p := open(t, 2, Options{})
	before := p.Waits()
	if before == nil {
		t.Skip("the kernel keeps no account")
	}
	p.Run(func(*Worker) {
		for began := ThreadTime(); ThreadTime()-began < 20*time.Millisecond; {
		}
	})
	for i, after := range p.Waits() {
		if after.Ran-before[i].Ran < 10*time.Millisecond || after.Waited < before[i].Waited {
			t.Errorf("worker %d: %+v, then %+v", i, before[i], after)
		}
	}
}

func TestParseWait(t *testing.T) {
	for text, want := range map[string]Wait{
		"120 7 3\n": {120, 7}, "0 0 0": {}, "": {-1, 0}, "12": {-1, 0}, "x 7 3": {-1, 0}, "5 -7 3": {-1, 0},
		"99999999999999999999 1 1": {-1, 0},
	} {
		got, ok := parseWait([]byte(text))
		if ok != (want.Ran >= 0) || ok && got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
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
	var s steal
	says(500, 10)
	s.open(path, 0)
	defer s.close()
	s.follow(1)
	says(900, 30)
	if got := s.since(time.Second); got != 200*time.Millisecond {
		t.Errorf("%v were taken of the PU of the worker, want 200ms", got)
	}
	s.follow(1)
	says(900, 50)
	if got := s.since(2 * time.Second); got != 200*time.Millisecond {
		t.Errorf("then %v, want 200ms", got)
	}
}
