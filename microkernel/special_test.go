package microkernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// TestSpecialValues checks that infinities, NaN, denormals and products that overflow or underflow
// give the results of the oracle. The payloads of NaN may differ.
func TestSpecialValues(t *testing.T) {
	r := rand.New(rand.NewPCG(30, 31))
	var specs []Spec
	for _, isa := range Host().ISAs() {
		for c := range kernel.Computes {
			for _, wt := range allWeightTypes() {
				if sp := Space(Host(), isa, c, wt); len(sp) > 0 {
					specs = append(specs, sp[r.IntN(len(sp))], sp[r.IntN(len(sp))])
				}
			}
		}
	}
	for _, s := range specs {
		kernel, err := Build(s)
		if err != nil {
			t.Fatal(err)
		}
		p := newProblem(t, r, s, s.MR+1, s.NR+3, max(64, s.B.Block()))
		p.spoil(r)
		p.checkSpecial(kernel.Run)
	}
}

// checkSpecial runs a kernel against the oracle, where some of the output is NaN.
func (p *problem) checkSpecial(run func(*GemmArgs)) {
	p.t.Helper()
	p.fill()
	p.run(func(g *GemmArgs) { RunRef(p.s, g) }, p.want)
	p.run(run, p.c)
	nans := 0
	for i := 0; i+4 <= len(p.c); i += 4 {
		got := math.Float32frombits(binary.LittleEndian.Uint32(p.c[i:]))
		want := math.Float32frombits(binary.LittleEndian.Uint32(p.want[i:]))
		if want != want {
			nans++
		}
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			p.t.Fatalf("%s: C at byte %d of rows of %d is %v (%x), want %v", p.s, i, p.cStride, got,
				math.Float32bits(got), want)
		}
	}
	if nans == len(p.c)/4 {
		p.t.Errorf("%s: every element is NaN, nothing was compared", p.s)
	}
}

// spoil puts special values into a few places of A and W.
func (p *problem) spoil(r *rand.Rand) {
	special := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-45, -1e-40, 3e38, -3e38,
		float32(math.Copysign(0, -1))}
	draw := func() float32 { return special[r.IntN(len(special))] }
	switch p.s.Compute {
	case ComputeInt8, ComputeInt8Superblock:
		blocks := 1
		if p.s.Compute == ComputeInt8Superblock {
			blocks = kernel.ActQ8Group / ActQ8Block
		}
		for g, scale := range []float32{float32(math.Inf(1)), 1e-45} {
			for b := g * blocks; b < (g+1)*blocks && b < p.l.K/ActQ8Block; b++ {
				q := kernel.ActQ8At(unsafe.Pointer(&p.a[0]), b)
				q.Scale = scale
				setSums(q, p.s.Compute)
			}
		}
	case ComputeInt8K:
		for row, scale := range []float32{float32(math.Inf(1)), 1e-45} {
			kernel.ActQ8KAt(unsafe.Pointer(&p.a[row*p.aStride]), 0).Scale = scale
		}
	case ComputeBF16, ComputeBF16Tile:
		for range 3 {
			binary.LittleEndian.PutUint16(p.a[2*r.IntN(p.l.K):], uint16(math.Float32bits(draw())>>16))
		}
	default:
		for range 3 {
			binary.LittleEndian.PutUint32(p.a[4*r.IntN(p.l.K):], math.Float32bits(draw()))
		}
	}
	panel := p.b[:p.l.panelBytes(p.l.K)]
	for range 3 {
		column, k := r.IntN(4), r.IntN(p.l.K)
		switch p.s.B {
		case F32:
			binary.LittleEndian.PutUint32(panel[64*k+4*column:], math.Float32bits(draw()))
		case F16:
			binary.LittleEndian.PutUint16(panel[32*k+2*column:], ref.HalfFromFloat(draw()))
		case BF16:
			binary.LittleEndian.PutUint16(panel[64*(k/2)+4*column+2*(k%2):], uint16(math.Float32bits(draw())>>16))
		default:
			binary.LittleEndian.PutUint16(panel[2*column:], ref.HalfFromFloat(draw()))
		}
	}
}
