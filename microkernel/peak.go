package microkernel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// PeakSpec names a compute roof: the fastest multiply-add of one instruction set on one data type.
type PeakSpec struct {
	ISA  ISA
	Type string // f32, int8 (u8 x s8 into s32), bf16 (pairs into f32), or one of Int8Types
}

// Where an instruction set has a matrix unit for bytes, its roof int8 is that of the unit alone.
// These say how its kernels compare with those on vectors.
const (
	Int8Vectors      = "int8-vectors"       // dot products of vectors
	Int8Kernel       = "int8-kernel"        // q8_0 weights on the unit, with all that a kernel loads, stores and scales
	Int8VectorKernel = "int8-vector-kernel" // the same product on vectors
)

// Int8Types are the roofs beside int8 that a matrix unit for bytes has, each of one PU.
func Int8Types() []string { return []string{Int8Vectors, Int8Kernel, Int8VectorKernel} }

// String is isa/type, as in avx512/f32.
func (s PeakSpec) String() string { return s.ISA.String() + "/" + s.Type }

// PeakSpecs lists the compute roofs that can be measured with these features, the widest
// instruction set first, plain Go last.
func PeakSpecs(f Features) []PeakSpec {
	var out []PeakSpec
	for _, isa := range f.ISAs() {
		for _, typ := range append([]string{"f32", "int8", "bf16"}, Int8Types()...) {
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
	if slices.Contains(Int8Types(), typ) {
		if unitKernel(s.ISA, f) == nil {
			return false
		}
		typ = ComputeInt8.String()
	}
	needs, known := t.Peaks[typ]
	return known && f.Has(t.Needs|needs)
}

// Peak is a kernel of independent multiply-adds on registers, which reaches the compute roof and
// reads no memory; those of kernels are what their names say. It is safe for concurrent use.
type Peak struct {
	Spec PeakSpec
	Ops  int // floating-point or integer operations of one iteration, two per multiply-add
	code jit.Func
	unit *unitPeak // of a kernel alone
	port bool      // see NewPort
}

// NewPeak builds the kernel; where the system forbids executable memory it is the one of plain Go,
// which its Spec then names. It refuses what the features do not allow; the caller passes Host()
// and nothing else when it means to Run.
func NewPeak(s PeakSpec, f Features) (*Peak, error) {
	if !s.supported(f) {
		return nil, fmt.Errorf("no %s multiply-add with the features %q", s, f)
	}
	if !s.ISA.Generates() || jit.Race {
		return &Peak{Spec: s, Ops: goPeakOps}, nil
	}
	typ := s.Type
	switch typ {
	case Int8Kernel, Int8VectorKernel:
		return newUnitPeak(s, f)
	case Int8Vectors:
		typ, f = ComputeInt8.String(), f&^matrixUnits
	}
	code, ops, err := s.ISA.Target().Probes.Peak(typ, f)
	if err != nil {
		return nil, err
	}
	fs, err := jit.Load(code)
	if errors.Is(err, jit.ErrNoExec) {
		return &Peak{Spec: PeakSpec{Go, "f32"}, Ops: goPeakOps}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Peak{Spec: s, Ops: ops, code: fs[0]}, nil
}

// Run does iters*Ops operations. Go cannot preempt it: keep it below some 200 microseconds a call.
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

// goPeak is eight independent chains in plain Go; architectures with a fused multiply-add use it.
// The result is kept so that the compiler keeps the work.
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

// Reader reads memory as fast as one core can and does nothing with it: the bandwidth roof. It is
// safe for concurrent use.
type Reader struct {
	ISA  ISA
	code jit.Func
}

// NewReader builds the reader of an instruction set; Go reads words in a loop, and so does any
// where the system forbids executable memory. It asks for each line ahead of time.
func NewReader(isa ISA, f Features) (*Reader, error) { return newReader(isa, f, true) }

// NewLoader builds a reader that asks for nothing ahead: of memory that lies in the first-level
// cache it reads what the load ports carry, which prefetches take up as well.
func NewLoader(isa ISA, f Features) (*Reader, error) { return newReader(isa, f, false) }

func newReader(isa ISA, f Features, prefetch bool) (*Reader, error) {
	if !f.Supports(isa) {
		return nil, fmt.Errorf("no %s reads with the features %q", isa, f)
	}
	if !isa.Generates() || jit.Race {
		return &Reader{ISA: isa}, nil
	}
	code, err := isa.Target().Probes.Reader(prefetch)
	if err != nil {
		return nil, err
	}
	fs, err := jit.Load(code)
	if errors.Is(err, jit.ErrNoExec) {
		return &Reader{ISA: Go}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Reader{ISA: isa, code: fs[0]}, nil
}

// Read reads the whole blocks of 1024 bytes in b the given number of times; b must live off the Go
// heap or be kept alive. It returns a word made of all that was read, which is 0 after an even
// number of passes. Go cannot preempt it: keep passes*len(b) below what 200 microseconds can read.
func (r *Reader) Read(b []byte, passes int) uint64 {
	n := len(b) / kernel.ReaderBlock
	if n == 0 || passes <= 0 {
		return 0
	}
	if !r.code.Valid() {
		var out uint64
		for range passes {
			out ^= goRead(b[:n*kernel.ReaderBlock])
		}
		return out
	}
	args := struct {
		p      unsafe.Pointer
		n      int64
		passes int64
		out    uint64
	}{unsafe.Pointer(&b[0]), int64(n), int64(passes), 0}
	r.code.Call(unsafe.Pointer(&args))
	runtime.KeepAlive(b)
	return args.out
}

// goRead is the oracle of Read: the exclusive or of all 64-bit words.
func goRead(b []byte) uint64 {
	w := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
	var s0, s1, s2, s3 uint64
	for ; len(w) >= 4; w = w[4:] {
		s0, s1, s2, s3 = s0^w[0], s1^w[1], s2^w[2], s3^w[3]
	}
	return s0 ^ s1 ^ s2 ^ s3
}
