package drafts

import (
	"math"
	"slices"
	"testing"
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/engine"
)

// TestBound compares the bound with values computed by hand.
func TestBound(t *testing.T) {
	for _, c := range []struct {
		accept   float64
		times    []float64
		requests int
		want     float64
	}{
		{0, []float64{1, 1.1, 1.2}, 1, 1},
		{1, []float64{1, 1, 1, 1}, 1, 4},
		{0.5, []float64{2, 2, 2}, 1, 1.75},
		{0.8, []float64{1, 1.5, 3}, 1, 1.2},
		{1, []float64{1, 2, 0, 3}, 2, 4. / 3},
		{1, []float64{1, 0, 0}, 1, 1},
		{1, nil, 1, 1},
	} {
		if got := bound(c.accept, c.times, c.requests); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("acceptance %g, times %v, %d requests: bound %g, want %g", c.accept, c.times, c.requests, got,
				c.want)
		}
	}
}

// TestSteps checks that the time of a step includes the time between forwards and that steps after
// a prompt do not count.
func TestSteps(t *testing.T) {
	var s Steps
	at := time.Unix(0, 0)
	forward := func(prefill bool, rows int, after time.Duration) {
		at = at.Add(after)
		s.Observe(engine.Forward{Prefill: prefill, Ended: at, Load: cost.Load{Rows: rows}})
	}
	forward(true, 8, time.Second)
	forward(false, 1, time.Hour)
	forward(false, 1, time.Second)
	forward(false, 3, 2*time.Second)
	forward(true, 8, time.Second)
	forward(false, 3, time.Hour)
	if got := s.medians(3); got[0] != 1 || got[1] != 0 || got[2] != 2 {
		t.Errorf("the times are %v", got)
	}
	if s.reset(); s.medians(1)[0] != 0 {
		t.Error("a time remains")
	}
}

// TestCopied checks the share and the runs of copied tokens.
func TestCopied(t *testing.T) {
	for _, share := range []float64{0, 0.6, 1} {
		r := Copied(500, 400, 20, share, 1<<20, nil, 3)
		known := map[int32]bool{}
		for _, id := range r.Prompt {
			known[id] = true
		}
		n := 0
		for _, id := range r.Answer {
			if known[id] {
				n++
			}
		}
		if len(r.Answer) != 400 || math.Abs(float64(n)/400-share) > 0.06 {
			t.Errorf("%d of %d tokens are copied, want a share of %g", n, len(r.Answer), share)
		}
	}
	r := Copied(1, 500, 20, 0.5, 9, func(id int32) bool { return id != 4 }, 1)
	if len(r.Answer) != 500 || slices.Min(r.Answer) != 4 || slices.Max(r.Answer) != 4 || r.Prompt[0] != 4 {
		t.Errorf("excluded tokens: %v", r)
	}
}
