package measure

import (
	"testing"
	"time"

	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
)

// TestOpClock checks that times of ops add up over the chunks of a prompt and restart with each
// forward.
func TestOpClock(t *testing.T) {
	c := opClock{took: make([]time.Duration, 2)}
	for range 2 {
		began := time.Now()
		c.begin()
		for range 3 {
			c.last = time.Now().Add(-time.Second)
			c.Passed(1)
		}
		if took := c.took[0]; took < 3*time.Second || took > 3*time.Second+time.Since(began) || c.took[1] != 0 {
			t.Errorf("three seconds of the first op are %v", c.took)
		}
	}
}

// TestOpRows checks that every op is in one row, that rows count the layers, and that a delta rule
// has seven operations per value of its state and token.
func TestOpRows(t *testing.T) {
	c, ok := synth.Tiny("qwen35")
	if !ok {
		t.Fatal("there is no small qwen35")
	}
	m, err := arch.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	rows, at := opRows(m, 100)
	count := 0
	for _, r := range rows {
		count += r.Count
		switch r.Op {
		case "delta":
			if want := 100.0 * 5 * 7 * 4 * 32 * 32; r.Count != 5 || r.GFLOPS != want {
				t.Errorf("%d delta rules of %g FLOP, want 5 of %g", r.Count, r.GFLOPS, want)
			}
		case "attention":
			if want := 2 * 4 * 100.0 * 101 / 2; r.GFLOPS/want != float64(int(r.GFLOPS/want)) || r.GFLOPS == 0 {
				t.Errorf("attention is of %g FLOP", r.GFLOPS)
			}
		case "head":
			if want := 2.0 * 256 * float64(c.Vocab); r.GFLOPS != want {
				t.Errorf("the head is of %g FLOP, want %g for the one row that it has", r.GFLOPS, want)
			}
		}
	}
	if count != len(m.Ops) || len(at) != len(m.Ops) {
		t.Errorf("%d ops and %d places for %d", count, len(at), len(m.Ops))
	}
}
