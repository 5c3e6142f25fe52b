package roofline

import (
	"testing"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// TestSharedUnit bounds the rates of kernels on a matrix unit by the share that a PU has of it when
// all PUs use it, and leaves them alone if the unit was measured with one PU only.
func TestSharedUnit(t *testing.T) {
	figures := map[string]float64{microkernel.Int8Vectors: 500, microkernel.Int8Kernel: 900,
		microkernel.Int8VectorKernel: 400, microkernel.Int8BlockKernel: 700, microkernel.Int8KKernel: 800,
		microkernel.Int8KOverlapKernel: 850, microkernel.Int8GroupKernel: 600, microkernel.BF16TileKernel: 300}
	for all, want := range map[float64]map[string]float64{
		0:     figures,
		16000: figures, // each PU has a unit
		4000: {microkernel.Int8Kernel: 900, microkernel.Int8BlockKernel: 700, microkernel.Int8KKernel: 500,
			microkernel.Int8KOverlapKernel: 500, microkernel.Int8GroupKernel: 600, microkernel.BF16TileKernel: 300},
		1000: {microkernel.Int8Kernel: 250, microkernel.Int8BlockKernel: 250, microkernel.Int8KKernel: 125,
			microkernel.Int8KOverlapKernel: 125, microkernel.Int8GroupKernel: 600, microkernel.BF16TileKernel: 125},
	} {
		p := &profiles.Profile{}
		add := func(typ string, pus int, rate float64) {
			p.Ceilings = append(p.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: pus,
				Figure: profiles.Figure{Median: rate, Max: rate, N: 3}})
		}
		add("int8", 1, 4000)
		if all > 0 {
			add("int8", 4, all)
		}
		for typ, rate := range figures {
			add(typ, 1, rate)
		}
		m := NewMachine(p)
		rates := m.KernelRates(microkernel.AVX512)
		for typ, rate := range want {
			if rates[typ] != rate {
				t.Errorf("the unit at %v on 4 PUs: %s %v, want %v", all, typ, rates[typ], rate)
			}
		}
		if r, ok := m.MatrixUnitRates(microkernel.AVX512); !ok || r.Kernel != want[microkernel.Int8Kernel] ||
			r.VectorKernel != 400 {
			t.Errorf("the unit at %v on 4 PUs: %+v", all, r)
		}
	}
}
