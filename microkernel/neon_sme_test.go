package microkernel

import (
	"math/rand/v2"
	"testing"
)

// TestOuterProducts checks every kernel of SME that the streaming vectors of this host allow, rows and columns beyond a tile, accumulation
// and special values included.
func TestOuterProducts(t *testing.T) {
	if raceEnabled || !Host().Has(HasSME) {
		t.Skip("no SME here")
	}
	r := rand.New(rand.NewPCG(50, 51))
	n := 0
	for _, s := range Space(Host(), NEON, ComputeF32, F32) {
		if s.Form != Outer {
			continue
		}
		for _, s := range []Spec{s, s.WithPrefetch(1024)} {
			checkSpec(t, r, s)
		}
		n++
	}
	if n == 0 {
		t.Errorf("no outer products among the kernels of %s", Host())
	}
}
