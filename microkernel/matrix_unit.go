package microkernel

import (
	"runtime"
	"sync"
	"unsafe"
)

// matrixUnits are the features of matrix units that multiply bytes.
const matrixUnits = HasAMX | HasSME | HasSMEInt8

// peakKernel describes a kernel whose rate is measured. If it names a rival, its rate is measured
// only on machines that have the rival, with which it is compared.
type peakKernel struct {
	compute  Compute
	weights  WeightType
	unit     bool // on a matrix unit rather than on vectors
	overlaps bool // unpacks while the unit multiplies
	once     bool // dequantizes once per call
	step     bool // has one row
	rival    string
}

// peakKernels are the kernels of KernelTypes.
var peakKernels = func() map[string]peakKernel {
	kernels := map[string]peakKernel{
		Int8Kernel:         {compute: ComputeInt8, weights: Q8_0, unit: true},
		Int8VectorKernel:   {compute: ComputeInt8, weights: Q8_0, rival: Int8Kernel},
		Int8KKernel:        {compute: ComputeInt8K, weights: Q4_K, unit: true},
		Int8KOverlapKernel: {compute: ComputeInt8K, weights: Q4_K, unit: true, overlaps: true},
		Int8BlockKernel:    {compute: ComputeInt8, weights: Q4_K, unit: true, rival: Int8KKernel},
		Int8GroupKernel:    {compute: ComputeInt8Superblock, weights: Q4_K, rival: Int8KKernel},
		BF16TileKernel:     {compute: ComputeBF16Tile, weights: BF16, unit: true},
	}
	for _, k := range vectorIntegers {
		kernels[k.Many] = peakKernel{compute: ComputeInt8K, weights: k.Weights, rival: k.Group}
		kernels[k.Step] = peakKernel{compute: ComputeInt8K, weights: k.Weights, step: true, rival: k.Group}
		kernels[k.Group] = peakKernel{compute: ComputeInt8Superblock, weights: k.Weights}
		kernels[k.Once] = peakKernel{compute: ComputeInt8Superblock, weights: k.Weights, once: true}
		kernels[k.GroupStep] = peakKernel{compute: ComputeInt8Superblock, weights: k.Weights, step: true}
	}
	return kernels
}()

// stepColumns is the largest width of tiles that are measured with one row, that of default plans.
const stepColumns = 4 * PanelWidth

// spec returns the kernel with the largest tile of an instruction set, or nil without one.
func (k peakKernel) spec(isa ISA, f Features) *Spec {
	return largest(SpaceOf(f, isa, k.compute, k.weights, func(s Spec) bool {
		return s.MatrixUnit() == k.unit && s.Overlaps() == k.overlaps && s.DequantizesOnce() == k.once &&
			(k.unit || k.once || s.OrdinaryForm()) && (!k.step || s.MR == 1 && s.NR <= stepColumns)
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
	kernel := peakKernels[s.Type]
	spec, rows := *kernel.spec(s.ISA, f), unitRows
	switch {
	case kernel.step:
		rows = 1
	case spec.KeepsSums():
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
