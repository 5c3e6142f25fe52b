package microkernel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"sandwich/microkernel/internal/jit"
)

// PeakSpec names a compute ceiling: the fastest multiply-add of one instruction set on one data
// type.
type PeakSpec struct {
	ISA  ISA
	Type string // f32, int8 (u8 x s8 into s32), bf16 (pairs into f32), or one of UnitTypes
}

// The ceiling int8 of an instruction set with a matrix unit for bytes is that of the unit alone.
// These types compare its kernels, with all that they load, unpack, store and scale, with those on
// vectors.
const (
	Int8Vectors        = "int8-vectors"          // dot products of vectors
	Int8Kernel         = "int8-kernel"           // q8_0 weights on the unit
	Int8VectorKernel   = "int8-vector-kernel"    // the same product on vectors
	Int8KKernel        = "int8-k-kernel"         // q4_K weights by ComputeInt8K on the unit,
	Int8KOverlapKernel = "int8-k-overlap-kernel" // by its form Overlap,
	Int8BlockKernel    = "int8-block-kernel"     // by ComputeInt8 on the unit,
	Int8GroupKernel    = "int8-256-kernel"       // and by ComputeInt8Superblock on vectors
	BF16TileKernel     = "bf16-tile-kernel"      // bf16 weights by ComputeBF16Tile
)

// UnitTypes returns the ceilings, in addition to int8 and bf16, of an instruction set with a matrix
// unit. Each is the rate of one PU.
func UnitTypes() []string {
	return []string{Int8Vectors, Int8Kernel, Int8VectorKernel, Int8KKernel, Int8KOverlapKernel, Int8BlockKernel,
		Int8GroupKernel, BF16TileKernel}
}

// IntegerKernels are the ceilings that compare, on vectors, the path ComputeInt8K of a weight type
// with ComputeInt8Superblock.
type IntegerKernels struct {
	Weights     WeightType
	Many, Step  string // ComputeInt8K, with many rows and with one
	Group, Once string // ComputeInt8Superblock with many rows: ordinary form and cached dequantization
	GroupStep   string // and with one row
}

// VectorIntegers lists the ceilings of the weight types whose dot products fit sixteen bits, by
// which ComputeInt8K may be the faster path on vectors. Each is the rate of one PU.
func VectorIntegers() []IntegerKernels { return slices.Clone(vectorIntegers) }

var vectorIntegers = []IntegerKernels{integerKernels(Q2_K), integerKernels(Q3_K)}

func integerKernels(t WeightType) IntegerKernels {
	k, group := "int8-k-"+t.String(), "int8-256-"+t.String()
	return IntegerKernels{Weights: t, Many: k, Step: k + "-step", Group: group, Once: group + "-once",
		GroupStep: group + "-step"}
}

// IntegerTypes returns the ceilings of VectorIntegers.
func IntegerTypes() (types []string) {
	for _, k := range vectorIntegers {
		types = append(types, k.Many, k.Step, k.Group, k.Once, k.GroupStep)
	}
	return types
}

// KernelTypes returns the ceilings that are rates of entire kernels or are compared with them:
// UnitTypes and IntegerTypes.
func KernelTypes() []string { return append(UnitTypes(), IntegerTypes()...) }

// AttentionPeakType returns the type of the peak that bounds attention by a dot product. Attention
// multiplies integers on vectors, whose peak has a separate name on CPUs with a matrix unit.
func AttentionPeakType(d AttentionDot, f Features) string {
	if d == AttendDPBUSD && f.HasMatrixUnit() {
		return Int8Vectors
	}
	return d.Arithmetic()
}

// String returns isa/type, as in avx512/f32.
func (s PeakSpec) String() string { return s.ISA.String() + "/" + s.Type }

// PeakSpecs lists the compute ceilings that can be measured with these features, the widest
// instruction set first, plain Go last. Those of IntegerTypes are of the widest only.
func PeakSpecs(f Features) []PeakSpec {
	var out []PeakSpec
	for i, isa := range f.ISAs() {
		types := append([]string{"f32", "int8", "bf16"}, UnitTypes()...)
		if i == 0 {
			types = append(types, IntegerTypes()...)
		}
		for _, typ := range types {
			s := PeakSpec{isa, typ}
			if s.supported(f) {
				out = append(out, s)
			}
		}
	}
	return out
}

func (s PeakSpec) supported(f Features) bool {
	t := s.ISA.Target()
	if t == nil {
		return false
	}
	typ := s.Type
	switch k, ok := peakKernels[typ]; {
	case typ == Int8Vectors && peakKernels[Int8Kernel].spec(s.ISA, f) == nil:
		return false
	case typ == Int8Vectors:
		typ = ComputeInt8.String()
	case ok && (k.spec(s.ISA, f) == nil || k.rival != "" && peakKernels[k.rival].spec(s.ISA, f) == nil):
		return false
	case ok:
		typ = k.compute.Ceiling()
	}
	needs, known := t.Peaks[typ]
	return known && f.Has(t.Needs|needs)
}

// Peak is a loop of independent multiply-adds on registers, which reaches the compute ceiling and
// reads no memory, or a whole kernel for the types of peakKernels. It is safe for
// concurrent use.
type Peak struct {
	Spec PeakSpec
	Ops  int // floating-point or integer operations of one iteration, two per multiply-add
	code jit.Func
	unit *unitPeak // of a kernel alone
	port bool      // see NewPort
}

// NewPeak builds the loop. If the system forbids executable memory, the result is the loop of
// plain Go, and its Spec says so. NewPeak returns an error if the features do not allow the spec;
// to run the loop, pass Host().
func NewPeak(s PeakSpec, f Features) (*Peak, error) {
	if !s.supported(f) {
		return nil, fmt.Errorf("no instruction for peak %s with the CPU features %q", s, f)
	}
	if !s.ISA.Generates() || jit.Race {
		return &Peak{Spec: s, Ops: goPeakOps}, nil
	}
	typ := s.Type
	if _, ok := peakKernels[typ]; ok {
		return newUnitPeak(s, f)
	}
	if typ == Int8Vectors {
		typ, f = ComputeInt8.String(), f&^matrixUnits
	}
	code, ops, err := s.ISA.Target().Probes.Peak(typ, f)
	if err != nil {
		return nil, err
	}
	loaded, err := jit.LoadOne(code)
	if errors.Is(err, jit.ErrNoExec) {
		return &Peak{Spec: PeakSpec{Go, "f32"}, Ops: goPeakOps}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Peak{Spec: s, Ops: ops, code: loaded}, nil
}

// Run executes iters*Ops operations. Go cannot preempt it: keep a call below about 200
// microseconds.
func (p *Peak) Run(iters int) {
	if iters <= 0 {
		return
	}
	if p.unit != nil {
		p.unit.run(iters)
		return
	}
	if !p.code.Valid() {
		goPeak(iters)
		return
	}
	args := struct {
		n int64
		m unsafe.Pointer // of ports that load and store
	}{int64(iters), nil}
	if p.port {
		line := new([2 * 64]byte)
		args.m = unsafe.Pointer(&line[-uintptr(unsafe.Pointer(line))%64])
	}
	p.code.Call(unsafe.Pointer(&args))
	runtime.KeepAlive(args.m)
}

const goPeakOps = 16

// goPeak runs eight independent chains in plain Go; architectures with a fused multiply-add use
// it. The result is kept alive so that the compiler keeps the work.
func goPeak(iters int) {
	a, b, c, d := float32(0), float32(.1), float32(.2), float32(.3)
	e, f, g, h := float32(.4), float32(.5), float32(.6), float32(.7)
	const x, y = float32(0.999), float32(0.001)
	for range iters {
		a, b, c, d = a*x+y, b*x+y, c*x+y, d*x+y
		e, f, g, h = e*x+y, f*x+y, g*x+y, h*x+y
	}
	runtime.KeepAlive(a + b + c + d + e + f + g + h)
}
