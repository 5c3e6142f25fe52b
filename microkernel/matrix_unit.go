package microkernel

import (
	"runtime"
	"sync"
	"unsafe"
)

// matrixUnits are the features of matrix units that multiply bytes.
const matrixUnits = HasAMX | HasSME | HasSMEInt8

// unitKernel returns the widest kernel for q8_0 weights on the matrix unit of an instruction set,
// or nil without one.
func unitKernel(isa ISA, f Features) *Spec {
	return largest(SpaceOf(f, isa, ComputeInt8, Q8_0, Spec.MatrixUnit))
}

// vectorKernel returns the kernel with the largest tile among those without a matrix unit.
func vectorKernel(isa ISA, f Features) *Spec {
	return largest(SpaceOf(f, isa, ComputeInt8, Q8_0, func(s Spec) bool { return !s.MatrixUnit() && s.OrdinaryForm() }))
}

// unitPeak runs a kernel on its own operands, which fit the second-level cache as those of a slice
// do.
type unitPeak struct {
	kernel *Kernel
	args   GemmArgs // without C
	panels []byte
	a      []byte
	c      sync.Pool // of []float32: of each caller alone
}

// Rows and depth of a call of unitPeak: those of a slice of many rows.
const (
	unitRows  = 128
	unitDepth = 1024
)

func newUnitPeak(s PeakSpec, f Features) (*Peak, error) {
	spec := *unitKernel(s.ISA, f)
	if s.Type == Int8VectorKernel {
		spec = *vectorKernel(s.ISA, f)
	}
	k, err := Build(spec)
	if err != nil {
		return nil, err
	}
	if !k.Native() {
		return &Peak{Spec: PeakSpec{Go, ComputeF32.String()}, Ops: goPeakOps}, nil
	}
	u := &unitPeak{kernel: k, panels: make([]byte, spec.NR/PanelWidth*PanelOffset(spec.B, unitDepth)),
		a: make([]byte, unitRows*spec.Compute.ActRowBytes(unitDepth))}
	var operands trial
	operands.panels(u.panels, spec.B)
	operands.rows(u.a, spec.Compute)
	u.args = GemmArgs{A: unsafe.Pointer(&u.a[0]), AStride: spec.Compute.ActRowBytes(unitDepth),
		B: unsafe.Pointer(&u.panels[0]), BStride: PanelOffset(spec.B, unitDepth), CStride: 4 * spec.NR, M: unitRows,
		N: spec.NR, K1: unitDepth}
	u.c.New = func() any { c := make([]float32, unitRows*spec.NR); return &c }
	return &Peak{Spec: s, Ops: 2 * unitRows * spec.NR * unitDepth, unit: u}, nil
}

func (u *unitPeak) run(iters int) {
	c := u.c.Get().(*[]float32)
	args := u.args
	args.C = unsafe.Pointer(&(*c)[0])
	for range iters {
		u.kernel.Run(&args)
	}
	runtime.KeepAlive(u)
	u.c.Put(c)
}
