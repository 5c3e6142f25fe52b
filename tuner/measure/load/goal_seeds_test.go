package load

import (
	"math"
	"testing"
)

// TestOverSeeds checks the means and extremes of figures of different seeds, and that a bound that
// one seed missed counts as missed regardless of the mean.
func TestOverSeeds(t *testing.T) {
	run := func(measured float64, more ...Figure) []Figure {
		return append([]Figure{{Goal: "open", Policy: "sandwich", What: "a", Alone: 2, Mixed: 2 * measured,
			Measured: measured, Bound: 2, Samples: 10}}, more...)
	}
	one := run(1.5)
	if got := OverSeeds([][]Figure{one}); len(got) != 1 || got[0] != one[0] || !got[0].Met() {
		t.Errorf("of one seed %+v", got)
	}
	other := Figure{Goal: "open", Policy: "fcfs", What: "a", Mixed: 7, Measured: 7, Samples: 3}
	got := OverSeeds([][]Figure{run(1), run(2.4, other), run(1.1)})
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	f := got[0]
	if math.Abs(f.Measured-1.5) > 1e-9 || math.Abs(f.Mixed-3) > 1e-9 || f.Alone != 2 || f.Bound != 2 ||
		f.Lowest != 1 || f.Highest != 2.4 || f.Seeds != 3 || f.Samples != 30 || f.Missed != 1 || f.Met() {
		t.Errorf("of three seeds %+v", f)
	}
	if f := got[1]; f.Measured != 7 || f.Seeds != 1 || f.Samples != 3 || !f.Met() {
		t.Errorf("what one seed knows is %+v", f)
	}
}
