package prefix

import (
	"math"
	"testing"

	"sandwich/runtime/kvcache"
)

// TestBestInterval checks the interval at known costs, that it is a multiple of the grid between
// one step and the length, and that no other multiple costs less, up to rounding.
func TestBestInterval(t *testing.T) {
	const grid = kvcache.StateGrid
	cost := func(blocks, n int, write, compute float64) float64 {
		return write*float64(blocks)/float64(n) + compute/float64(blocks)*float64(n)/2
	}
	for _, c := range []struct {
		blocks         int
		write, compute float64
		want           int
	}{
		{250, 0, 100, grid},              // states cost nothing
		{250, 0.4, 0, 256},               // computing costs nothing
		{250, 1000, 1, 256},              // a state costs more than the prefix
		{250, 0.4, 100, 16},              // 22 blocks, rounded
		{250, 0.4, 5, 96},                // 100 blocks
		{2000, 0.4, 100, 176},            // 179 blocks
		{3, 1, 1, grid}, {0, 1, 1, grid}, // shorter than the grid
		{250, math.Inf(1), 1, 256},        // a rate of 0
		{250, math.NaN(), 1, 256},         // nothing is known
		{250, 0.4, math.MaxFloat64, grid}, // overflows
	} {
		n := bestInterval(c.blocks, c.write, c.compute)
		if n != c.want {
			t.Errorf("%d blocks, %g s to write, %g s to compute: %d blocks, want %d", c.blocks, c.write, c.compute, n,
				c.want)
		}
		if c.compute <= 0 || c.compute > 1e6 || c.blocks < 1 || !(c.write < 1e6) {
			continue
		}
		for other := grid; other <= c.blocks; other += grid {
			if a, b := cost(c.blocks, n, c.write, c.compute), cost(c.blocks, other, c.write, c.compute); a > 1.1*b {
				t.Errorf("%d blocks: an interval of %d costs %g s, one of %d only %g s", c.blocks, n, a, other, b)
			}
		}
	}
}
