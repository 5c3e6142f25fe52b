package calibrate

import (
	"slices"
	"testing"

	"sandwich/microkernel"
)

// TestPairsOfPorts: pairs are mixed by their rates, and what a pair is hindered by is noted where
// neither of it runs as alone.
func TestPairsOfPorts(t *testing.T) {
	classes := map[string]microkernel.InstructionClass{}
	for c := range microkernel.InstructionClasses {
		classes[c.String()] = c
	}
	multiply, dot, load, word := classes["multiply"], classes["dot"], classes["load"], classes["load-word"]
	var r PortFigures
	r.Alone[multiply], r.Alone[dot], r.Alone[load], r.Alone[word] = 2, 0.9, 2, 3
	mixes := r.pairs()
	want := [][]microkernel.InstructionClass{{multiply, multiply, dot}, {word, word, load}}
	if len(mixes) != 2 || !slices.Equal(mixes[0], want[0]) || !slices.Equal(mixes[1], want[1]) {
		t.Errorf("the mixes are %v, want %v", mixes, want)
	}
	for _, c := range []struct{ rate, together float64 }{
		{2, 2}, // ports that both share
		{2.4, 2.4},
		{2.62, 0}, // dot products run as alone
		{2.9, 0},
	} {
		r.Together = PortFigures{}.Together
		r.together(mixes[0], c.rate)
		if got := r.Together[dot][multiply]; got != c.together || got != r.Together[multiply][dot] {
			t.Errorf("at %g a second the pair is held to %g, want %g", c.rate, got, c.together)
		}
	}
}
