package microkernel

import (
	"fmt"
	"runtime"
	"unsafe"
)

// proven runs an int8 kernel whose instructions a CPU may get wrong against its definition, in
// every height it has. run is Kernel.Run.
func proven(s Spec, run func(*GemmArgs), advice string) error {
	const cols, blocks = PanelWidth, 2
	t := s.B
	seed := uint32(1)
	random := func() uint32 { seed = seed*1664525 + 1013904223; return seed >> 8 }
	panel := make([]byte, PanelOffset(t, blocks*t.Block()))
	for i := range panel {
		panel[i] = byte(random())
	}
	for b := range blocks { // scales that are finite
		for i := range t.Desc().HeadBytes() / 2 {
			panel[PanelOffset(t, b*t.Block())+2*i+1] = byte(0x20 + random()%8)
		}
	}
	rows, each := s.MR+3, blocks*t.Block()/ActQ8Block
	a := make([]ActQ8, rows*each)
	for i := range a {
		a[i].Scale = float32(random()%1000) / 1000
		for j := range a[i].Q {
			a[i].Q[j] = int8(random()%255) - 127
		}
		a[i].SetSums()
	}
	got, want := make([]float32, rows*cols), make([]float32, rows*cols)
	g := GemmArgs{A: unsafe.Pointer(&a[0]), AStride: each * ActQ8Bytes, B: unsafe.Pointer(&panel[0]),
		C:       unsafe.Pointer(&want[0]),
		CStride: 4 * cols, M: rows, N: cols, K1: blocks * t.Block()}
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
	runtime.KeepAlive(panel)
	return nil
}
