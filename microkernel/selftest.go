package microkernel

import (
	"fmt"
	"runtime"
	"unsafe"
)

// proven runs an int8 kernel whose instructions a CPU may get wrong against its definition, in
// every height it has. run is Kernel.Run.
func selfTest(s Spec, run func(*GemmArgs), advice string) error {
	const blocks = 2
	t, cols := s.B, s.NR
	stride := PanelOffset(t, blocks*t.Block())
	panels := make([]byte, cols/PanelWidth*stride)
	rows, each := s.MR+3, blocks*t.Block()/ActQ8Block
	a := make([]ActQ8, rows*each)
	fillTrial(panels, a, t)
	got, want := make([]float32, rows*cols), make([]float32, rows*cols)
	g := GemmArgs{A: unsafe.Pointer(&a[0]), AStride: each * ActQ8Bytes, B: unsafe.Pointer(&panels[0]),
		BStride: stride, C: unsafe.Pointer(&want[0]), CStride: 4 * cols, M: rows, N: cols, K1: blocks * t.Block()}
	RunRef(s, &g)
	g.C = unsafe.Pointer(&got[0])
	for m := 1; m <= rows; m++ { // more than MR rows are two tiles
		g.M = m
		run(&g)
		for i := range m * cols {
			if got[i] != want[i] {
				return fmt.Errorf("kernel spec %s: the tiles of this CPU give %g where %g is right: use dot product %s",
					s, got[i], want[i], advice)
			}
		}
		clear(got)
	}
	runtime.KeepAlive(panels)
	return nil
}
