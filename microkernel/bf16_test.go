package microkernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kerneltest"
)

// bf16Specs returns the kernels of the bf16 path that this host can run, and skips the test if
// there are none.
func bf16Specs(t *testing.T) []Spec {
	t.Helper()
	var out []Spec
	for _, isa := range Host().ISAs() {
		out = append(out, Space(Host(), isa, ComputeBF16, BF16)...)
	}
	if len(out) == 0 {
		t.Skipf("this CPU (%s) has no dot product of bfloat16; use one with avx512_bf16 or NEON bf16", Host())
	}
	return out
}

// TestPairsAgainstRef is TestKernelsAgainstRef for this path, of which that test draws few specs.
func TestPairsAgainstRef(t *testing.T) {
	specs := bf16Specs(t)
	r := rand.New(rand.NewPCG(50, 51))
	r.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
	switch {
	case jit.Race:
		specs = specs[:2]
	case !*long:
		specs = specs[:min(len(specs), 60)]
	}
	for _, s := range specs {
		if p := s.WithPrefetch(64 * (1 + r.IntN(64))); r.IntN(4) == 0 && p.Validate() == nil {
			s = p
		} else if p := s.WithSpread(); r.IntN(4) == 0 && p.Validate() == nil {
			s = p
		}
		checkSpec(t, r, s)
	}
	t.Logf("%d specs", len(specs))
}

// TestPairInstruction compares the definitions of the dot products with the instruction of this
// CPU: at random, where sums and products overflow, underflow and cancel, and in a case that shows
// whether a subnormal result is detected before or after rounding.
func TestPairInstruction(t *testing.T) {
	specs := bf16Specs(t)
	if jit.Race {
		t.Skip("race builds run plain Go; run without -race")
	}
	for _, s := range specs {
		if s.MR != 1 && s.MR != 2 || s.NR != PanelWidth || s.KU != 8 {
			continue
		}
		kernel, err := Build(s)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(52, 53))
		for i := range 4000 {
			if err := tryPairs(kernel, r, i%6); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// tryPairs adds four pairs, or one, to sums that are there already.
func tryPairs(kernel *Kernel, r *rand.Rand, mode int) error {
	s := kernel.Spec()
	k := []int{2, 8}[r.IntN(2)]
	a := make([]uint16, s.MR*8)
	w := make([]uint16, PanelWidth*8)
	got, want := make([]float32, s.MR*PanelWidth), make([]float32, s.MR*PanelWidth)
	for i := range a {
		a[i] = drawBF16(r, mode)
	}
	for i := range w {
		w[i] = drawBF16(r, mode)
	}
	for i := range got {
		got[i] = drawSum(r, mode)
	}
	if mode == 5 {
		clear(a)
		clear(w)
		a[0] = 0x1A00                                              // 2^-75
		w[0] = []uint16{0x9A00, 0x99C0, 0x9980, 0x9900}[r.IntN(4)] // -2^-75, three quarters, half and a quarter of it
		got[0] = 0x1p-126
	}
	copy(want, got)
	args := GemmArgs{A: unsafe.Pointer(&a[0]), AStride: 2 * 8, B: unsafe.Pointer(&w[0]), BStride: 64,
		C: unsafe.Pointer(&got[0]), CStride: 4 * PanelWidth,
		M: s.MR, N: PanelWidth, K1: k, Accumulate: true}
	before := append([]float32(nil), got...)
	kernel.Run(&args)
	args.C = unsafe.Pointer(&want[0])
	RunRef(s, &args)
	for i := range got {
		g, x := math.Float32bits(got[i]), math.Float32bits(want[i])
		if g != x && (got[i] == got[i] || want[i] == want[i]) {
			return fmt.Errorf("%s, mode %d, k %d: element %d of %#08x is %#08x, want %#08x; a %04x", s, mode, k, i,
				math.Float32bits(before[i]), g, x, a)
		}
	}
	return nil
}

func drawBF16(r *rand.Rand, mode int) uint16 {
	bits := uint16(r.Uint32())
	switch mode {
	case 0:
		return bits // anything
	case 1:
		return bits&0x80FF | 0x3F00 // about 1
	case 2:
		return bits&0x807F | uint16(56+r.IntN(14))<<7 // products about 2^-126
	case 3:
		return bits&0x80FF | uint16(190+r.IntN(4))<<7 // about 2^128
	}
	return uint16(math.Float32bits(kerneltest.Edge(r)) >> 16)
}

func drawSum(r *rand.Rand, mode int) float32 {
	bits := r.Uint32()
	switch mode {
	case 1:
		return r.Float32() * 4
	case 2:
		return math.Float32frombits(bits&0x807FFFFF | uint32(r.IntN(4))<<23)
	case 3:
		return math.Float32frombits(bits&0x81FFFFFF | 0x7E000000)
	case 4, 5:
		return kerneltest.Edge(r)
	}
	return math.Float32frombits(bits)
}
