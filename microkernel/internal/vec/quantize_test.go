package vec

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/kerneltest"
)

// TestRoundRowBF16 compares rows of every length with the definition, wild and special values among
// them.
func TestRoundRowBF16(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, r *rand.Rand) {
		for _, n := range vecLengths {
			x := guarded[float32](t, n)
			draw(r, x, wild)
			for i := range x {
				switch r.IntN(4) {
				case 0:
					x[i] = kerneltest.Edge(r)
				case 1:
					x[i] = math.Float32frombits(r.Uint32())
				}
			}
			got, want := guarded[uint16](t, n+n%2), make([]uint16, n+n%2)
			for i := range got {
				got[i], want[i] = 0xDEAD, 0xDEAD
			}
			kernel := []kernel.VectorOp{kernel.OpRoundBF16, kernel.OpRoundQuery}[r.IntN(2)]
			v.roundRow(kernel, p0(x), n, unsafe.Pointer(&got[0]))
			refRoundRowBF16(kernel, p0(x), n, unsafe.Pointer(&want[0]))
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("n=%d: element %d is %#04x, want %#04x", n, i, got[i], want[i])
				}
			}
		}
	})
}
