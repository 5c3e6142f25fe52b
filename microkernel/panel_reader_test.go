package microkernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kerneltest"
)

// TestPanelReader checks that the kernel that the probe times computes the product of a row and the
// panels, for every prefetch distance, and reads no byte beyond the stated ones, by a guard page.
func TestPanelReader(t *testing.T) {
	for _, isa := range Host().ISAs() {
		for _, ahead := range []int{0, MaxSinglePrefetch} {
			r, err := NewPanelReader(isa, ahead)
			if err != nil {
				t.Fatal(isa, err)
			}
			if r.Native() != (isa.Generates() && !jit.Race) {
				t.Fatalf("%s: native %v", isa, r.Native())
			}
			if !r.Native() {
				continue
			}
			if r.Spec.ISA != isa || r.Spec.Prefetch != ahead || r.Bytes < 16<<10 || r.Bytes > 1<<20 {
				t.Errorf("%s asked %d ahead: %s reads %d bytes", isa, ahead, r.Spec, r.Bytes)
			}
			b := kerneltest.Guarded(t, r.Bytes)
			w := unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
			for i := range w {
				w[i] = rand.Float32() - 0.5
			}
			for i := range r.row {
				r.row[i] = rand.Float32() - 0.5
			}
			r.Read(b)
			for n, got := range r.c {
				want := 0.0
				for k := range streamDepth {
					want += float64(r.row[k]) * float64(w[n/PanelWidth*r.stride/4+k*PanelWidth+n%PanelWidth])
				}
				if math.Abs(float64(got)-want) > 1e-3 {
					t.Fatalf("%s: column %d is %g, want %g", r.Spec, n, got, want)
				}
			}
		}
	}
}
