package pool

import (
	"slices"
	"testing"

	"sandwich/runtime/pool/internal/sys"
)

// TestLeaderIsBound checks that the thread of a leader is on the PU of worker 0, and follows when
// that is moved.
func TestLeaderIsBound(t *testing.T) {
	p := open(t, 2, Options{Pin: true})
	to := p.PUs()[1]
	p.LeadShared(func(l *Leader) {
		check := func(when string, pu int) {
			got, err := sys.ThreadPUs(0)
			if err != nil || !slices.Equal(got, []int{pu}) {
				t.Errorf("%s the leader may run on %v (%v), want PU %d", when, got, err, pu)
			}
			l.Take()
			defer l.Give()
			l.Run(func(w *Worker) {
				if w.Index() == 0 && w.PU() != pu {
					t.Errorf("%s worker 0 is on PU %d, want %d", when, w.PU(), pu)
				}
			})
		}
		check("at first", p.PUs()[0])
		if err := p.Move(0, to); err != nil {
			t.Error(err)
		}
		check("after Move", to)
		if at, err := p.Places(); err != nil || at.At[0] != to || len(at.Lost) > 0 {
			t.Errorf("places %+v, %v", at, err)
		}
	})
	if len(p.Waits()) != 2 && p.Waits() != nil {
		t.Errorf("waits of %d workers", len(p.Waits()))
	}
}
