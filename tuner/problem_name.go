package tuner

import (
	"fmt"
	"math/bits"

	"sandwich/tuner/search"
)

// problemName returns everything but the effort that determines what a search times. Models with
// equal problems share the results.
func (t *partition) problemName(j *job, p *search.Problem) string {
	cold := "from memory"
	if n := modelBytes(t.shape); n <= t.lastLevel() { // it stays in the last-level cache
		cold = fmt.Sprintf("2^%d bytes", bits.Len64(uint64(n)))
	}
	ranks := 1
	if j.shape.PerRank {
		ranks = len(t.def.Ranks)
	}
	return fmt.Sprintf("%s %s %s on PUs %s, %d threads x %d, %s, %s, %s", p.Phase, p.Key, p.Compute, j.pus, p.Threads,
		ranks, t.def.ISAOf(j.class), cold, t.o.Strategy)
}
