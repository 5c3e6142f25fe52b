package microkernel

import (
	"runtime"
	"sync"
	"unsafe"
)

// matrixUnits are the features of matrix units that multiply bytes.
const matrixUnits = HasAMX | HasSME | HasSMEInt8

// peakKernel describes a kernel whose rate is measured. The rate is of use only together with that
// of its rival on a matrix unit, if it names one.
type peakKernel struct {
	compute Compute
	weights WeightType
	unit    bool // on a matrix unit rather than on vectors
	rival   string
}

// peakKernels are the kernels of UnitTypes.
var peakKernels = map[string]peakKernel{
	Int8Kernel:       {ComputeInt8, Q8_0, true, ""},
	Int8VectorKernel: {ComputeInt8, Q8_0, false, Int8Kernel},
	Int8KKernel:      {ComputeInt8K, Q4_K, true, ""},
	Int8BlockKernel:  {ComputeInt8, Q4_K, true, Int8KKernel},
	Int8GroupKernel:  {ComputeInt8Superblock, Q4_K, false, Int8KKernel},
	BF16TileKernel:   {ComputeBF16Tile, BF16, true, ""},
}

// spec returns the kernel with the largest tile of an instruction set, or nil without one.
func (k peakKernel) spec(isa ISA, f Features) *Spec {
	return largest(SpaceOf(f, isa, k.compute, k.weights, func(s Spec) bool {
		return s.MatrixUnit() == k.unit && (k.unit || s.OrdinaryForm())
	}))
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
	unitRows     = 128
	unitMoreRows = 512 // of kernels that prepare weights once per call
	unitDepth    = 1024
)

func newUnitPeak(s PeakSpec, f Features) (*Peak, error) {
	spec, rows := *peakKernels[s.Type].spec(s.ISA, f), unitRows
	if spec.KeepsSums() {
		rows = unitMoreRows
	}
	k, err := Build(spec)
	if err != nil {
		return nil, err
	}
	if !k.Native() {
		return &Peak{Spec: PeakSpec{Go, ComputeF32.String()}, Ops: goPeakOps}, nil
	}
	u := &unitPeak{kernel: k, panels: make([]byte, spec.NR/PanelWidth*PanelOffset(spec.B, unitDepth)),
		a: make([]byte, rows*spec.Compute.ActRowBytes(unitDepth))}
	var operands trial
	operands.panels(u.panels, spec.B)
	operands.rows(u.a, spec.Compute)
	u.args = GemmArgs{A: unsafe.Pointer(&u.a[0]), AStride: spec.Compute.ActRowBytes(unitDepth),
		B: unsafe.Pointer(&u.panels[0]), BStride: PanelOffset(spec.B, unitDepth), CStride: 4 * spec.NR, M: rows,
		N: spec.NR, K1: unitDepth}
	u.c.New = func() any { c := make([]float32, rows*spec.NR); return &c }
	return &Peak{Spec: s, Ops: 2 * rows * spec.NR * unitDepth, unit: u}, nil
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
