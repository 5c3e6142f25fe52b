package microkernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kerneltest"
)

// TestBlockReader checks that the kernel that the probe times computes the product of its rows and
// the panels with the bits of plain Go, for blocks of every depth, and reads no byte beyond the
// stated ones, by a guard page.
func TestBlockReader(t *testing.T) {
	oracle, err := Build(SpaceOf(Host(), Go, ComputeInt8, Q8_0, func(Spec) bool { return true })[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, isa := range Host().ISAs() {
		var first []float32
		for _, bytes := range []int{0, 16 << 10, 100 << 10, 1 << 30} {
			r, err := NewBlockReader(isa, bytes)
			if err != nil {
				t.Fatal(isa, err)
			}
			if !isa.Generates() || jit.Race {
				if r.Native() {
					t.Errorf("%s: native", isa)
				}
				continue
			}
			if !r.Native() { // neon without dot products
				continue
			}
			limit := max(bytes, PanelOffset(Q8_0, 32)*r.Spec.NR/PanelWidth)
			for i := range r.blocks {
				if k := r.at(i+1) - r.at(i); k < 32 || PanelOffset(Q8_0, k)*r.Spec.NR/PanelWidth > limit {
					t.Errorf("%s for %d bytes: block %d of %d has a depth of %d", r.Spec, bytes, i, r.blocks, k)
				}
			}
			if r.Spec.ISA != isa || !r.Spec.Spread || r.at(0) != 0 || r.at(r.blocks) != blockDepth {
				t.Errorf("%s: %s, %d blocks from %d to %d", isa, r.Spec, r.blocks, r.at(0), r.at(r.blocks))
			}
			b := kerneltest.Guarded(t, r.Bytes)
			for n := 0; n < r.Spec.NR; n += PanelWidth {
				new(trial).panels(b[n/PanelWidth*r.stride:][:PanelOffset(Q8_0, blockDepth)], Q8_0)
			}
			for i := range r.c {
				r.c[i] = float32(math.NaN())
			}
			r.Read(b)
			if first == nil {
				first = make([]float32, len(r.c))
				for n := 0; n < r.Spec.NR; n += PanelWidth {
					oracle.Run(&GemmArgs{A: unsafe.Pointer(&r.a[0]), AStride: blockStride * ActQ8Bytes,
						B: unsafe.Pointer(&b[n/PanelWidth*r.stride]), BStride: r.stride, C: unsafe.Pointer(&first[n]),
						CStride: 4 * r.Spec.NR, M: blockRows, N: PanelWidth, K1: blockDepth})
				}
			}
			if !slices.Equal(r.c, first) {
				t.Fatalf("%s, %d blocks: first %v, want %v", r.Spec, r.blocks, r.c[:PanelWidth], first[:PanelWidth])
			}
		}
	}
}
