package pool

import (
	"slices"
	"testing"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// TestMove binds a worker to another PU while it serves. Places binds it to the new one again, and
// a rejected PU changes nothing.
func TestMove(t *testing.T) {
	p := open(t, 2, Options{Pin: true})
	pus := p.PUs()
	if pus[0] == pus[1] {
		t.Skip("needs two PUs; allow this process another one")
	}
	where := func() (got [2]int) {
		p.Run(func(w *Worker) {
			mask, err := sys.AllowedPUs()
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
		t.Skip("the kernel does not count context switches: needs Linux with /proc mounted")
	}
	p.Run(func(*Worker) {
		for began := ThreadTime(); ThreadTime()-began < 20*time.Millisecond; {
		}
	})
	for i := range before {
		var after Wait
		counted := func() bool { // the kernel counts at ticks and switches
			after = p.Waits()[i]
			return after.Ran-before[i].Ran >= 10*time.Millisecond
		}
		if !soon(counted) || after.Waited < before[i].Waited {
			t.Errorf("worker %d: %+v, then %+v", i, before[i], after)
		}
	}
}
