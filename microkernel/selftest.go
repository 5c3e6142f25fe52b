package microkernel

import (
	"fmt"
	"runtime"
	"unsafe"
)

// selfTest compares a kernel with plain Go on random operands for every number of rows up to
// more than one tile. run is Kernel.Run; instead is the dot product to use if the comparison
// fails.
func selfTest(s Spec, run func(*GemmArgs), instead string) error {
	k := 2 * max(s.B.Block(), s.Compute.KStep(s.B))
	t, cols := s.B, s.NR
	stride, pitch := PanelOffset(t, k), s.Compute.ActRowBytes(k)
	panels := make([]byte, cols/PanelWidth*stride)
	rows := s.MR + 3
	a := make([]byte, rows*pitch)
	var operands trial
	operands.panels(panels, t)
	operands.rows(a, s.Compute)
	got, want := make([]float32, rows*cols), make([]float32, rows*cols)
	g := GemmArgs{A: unsafe.Pointer(&a[0]), AStride: pitch, B: unsafe.Pointer(&panels[0]),
		BStride: stride, C: unsafe.Pointer(&want[0]), CStride: 4 * cols, M: rows, N: cols, K1: k}
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
	runtime.KeepAlive(a)
	return nil
}
