package microkernel

import (
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// TestEveryType checks a few kernels of every weight type on every instruction set, compute path,
// form and dot product of this host: the sample of TestKernelsAgainstRef may leave one out.
func TestEveryType(t *testing.T) {
	if jit.Race {
		t.Skip("race builds run plain Go; run without -race")
	}
	r := rand.New(rand.NewPCG(60, 61))
	type kind struct {
		isa  ISA
		form Form
		dot  Dot
	}
	for _, b := range qtype.All() {
		t.Run(b.String(), func(t *testing.T) {
			for c := range kernel.Computes {
				kinds := map[kind][]Spec{}
				for _, isa := range Host().ISAs() {
					for _, s := range Space(Host(), isa, c, b) {
						k := kind{s.ISA, s.Form, s.Dot}
						kinds[k] = append(kinds[k], s)
					}
				}
				for _, specs := range kinds {
					for range 2 {
						checkSpec(t, r, specs[r.IntN(len(specs))])
					}
				}
			}
		})
	}
}

// TestPackedBytes checks the bound of the size of panels: one and a half times the bytes in the
// file, if rows fill the panels, for any number of blocks.
func TestPackedBytes(t *testing.T) {
	for _, b := range qtype.All() {
		if !b.Quantized() {
			continue
		}
		for blocks := 1; blocks < 200; blocks++ {
			l := Layout{Type: b, N: 48, K: blocks * b.Block()}
			if file := l.N * b.RowBytes(l.K); 2*l.Bytes() > 3*file && l.K >= 256 {
				t.Errorf("%s, K %d: %d bytes in panels, %d in the file", b, l.K, l.Bytes(), file)
			}
		}
	}
}
