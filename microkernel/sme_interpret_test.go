package microkernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	arm64gemm "sandwich/microkernel/internal/arm64/gemm"
	"sandwich/microkernel/internal/jit"
)

// outerFeatures is those of a machine that has all of SME.
const outerFeatures = HasNEON | HasSME | HasSME512 | HasSMEInt8

// take makes the machine one with vectors of so many bytes that owns the operands of a problem.
func (m *smeMachine) take(p *problem, length int) {
	m.length, m.memory = length, nil
	m.own("A", p.a, false)
	m.own("B", p.b, false)
	m.own("C", p.c, true)
}

// lengthsOf is the lengths of vectors, in bytes, that a kernel is for: one of them in short runs,
// which may be emulated themselves.
func lengthsOf(r *rand.Rand, s Spec) []int {
	all := []int{32, 64, 128, 256}
	if s.Needs().Has(HasSME512) {
		all = all[1:]
	}
	if testing.Short() {
		i := r.IntN(len(all))
		all = all[i : i+1]
	}
	return all
}

// TestOuterProductsInterpreted runs the machine code of every kernel of SME against the oracle on
// any machine, instruction by instruction, with vectors of the lengths that may run it: rows and
// columns beyond a tile, blocks of k, nothing read or written beyond the operands.
func TestOuterProductsInterpreted(t *testing.T) {
	if jit.Race {
		t.Skip("slow with the race detector, and runs one goroutine; run without -race")
	}
	r := rand.New(rand.NewPCG(54, 55))
	for _, s := range slices.Concat(outerSpecs(outerFeatures, ComputeF32), outerSpecs(outerFeatures, ComputeInt8),
		outerSpecs(outerFeatures, ComputeInt8K)) {
		m := &smeMachine{t: t}
		if s.CanPrefetch() {
			s = s.WithPrefetch(1024)
		}
		run := m.load(s, Spec.Assemble)
		for _, length := range lengthsOf(r, s) {
			k := 1 + r.IntN(70)
			cut := r.IntN(k) &^ 1
			if s.B.Quantized() {
				k, cut = 2*s.B.Block(), s.B.Block()
			}
			p := newProblem(t, r, s, 1+r.IntN(2*s.MR+1), 1+r.IntN(s.NR+PanelWidth), k)
			m.take(p, length)
			p.checkRun(run, []int{cut})
		}
		if m.outer == 0 {
			t.Errorf("%s: no outer product was made", s)
		}
	}
}

// TestOuterProductsInterpretedSpecial checks that infinities, NaN and denormals give the results of
// the oracle, also in int8 kernels without the outer product of bytes.
func TestOuterProductsInterpretedSpecial(t *testing.T) {
	if jit.Race {
		t.Skip("slow with the race detector, and runs one goroutine; run without -race")
	}
	r := rand.New(rand.NewPCG(56, 57))
	for _, c := range []struct {
		compute Compute
		b       WeightType
	}{{ComputeF32, F32}, {ComputeF32, F16}, {ComputeF32, BF16}, {ComputeInt8, Q8_0}, {ComputeInt8, Q4_1},
		{ComputeInt8, Q6_K}, {ComputeInt8K, Q4_K}, {ComputeInt8K, Q6_K}} {
		for _, s := range Space(outerFeatures, NEON, c.compute, c.b) {
			if s.Form != Outer {
				continue
			}
			p, m := newProblem(t, r, s, s.MR+1, s.NR+3, max(64, s.B.Block())), &smeMachine{t: t}
			m.take(p, 64)
			if c.compute == ComputeInt8 {
				p.checkRun(m.load(s, arm64gemm.AssembleByRows), nil)
			}
			p.spoil(r)
			p.checkSpecial(m.load(s, Spec.Assemble))
		}
	}
}

// TestPlanesInterpreted runs the kernels of the path int8-k over more k than are unpacked at a time
// and over several row tiles: every type, with the shortest vectors that hold a tile.
func TestPlanesInterpreted(t *testing.T) {
	if jit.Race {
		t.Skip("slow with the race detector, and runs one goroutine; run without -race")
	}
	r := rand.New(rand.NewPCG(58, 59))
	for _, s := range outerSpecs(outerFeatures, ComputeInt8K) {
		if s.B != Q2_K && s.B != Q4_K && s.B != Q6_K && testing.Short() {
			continue
		}
		m := &smeMachine{t: t}
		p := newProblem(t, r, s, 17+r.IntN(16), s.NR, 1280)
		m.take(p, 64)
		p.checkRun(m.load(s, Spec.Assemble), []int{256})
	}
}

// TestSMEIntegersNeedLongVectors checks that a tile of sixteen rows of planes needs vectors of 512
// bits, for every height of the last tile.
func TestSMEIntegersNeedLongVectors(t *testing.T) {
	for _, s := range outerSpecs(outerFeatures, ComputeInt8K) {
		for _, rows := range []int{1, 8, 16} {
			if s.MR = rows; !s.Needs().Has(HasSME512 | HasSMEInt8) {
				t.Errorf("%s needs %s", s, s.Needs())
			}
		}
	}
	if n := len(outerSpecs(outerFeatures&^HasSME512, ComputeInt8K)); n > 0 {
		t.Errorf("%d kernels without vectors of 512 bits", n)
	}
}
