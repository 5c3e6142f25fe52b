package microkernel

import (
	"fmt"
	"runtime"
	"unsafe"
)

// selfTest compares an int8 kernel with plain Go on random operands for every number of rows up to
// more than one tile. run is Kernel.Run; instead is the dot product to use if the comparison
// fails.
func selfTest(s Spec, run func(*GemmArgs), instead string) error {
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
	for m := 1; m <= rows; m++ { // more than MR rows make two tiles
		g.M = m
		run(&g)
		for i := range m * cols {
			if got[i] != want[i] {
				return fmt.Errorf("kernel spec %s failed its self-test on this CPU: got %g, want %g; "+
					"use dot product %s", s, got[i], want[i], instead)
			}
		}
		clear(got)
	}
	runtime.KeepAlive(panels)
	return nil
}
