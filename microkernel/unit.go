package microkernel

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// matrixUnits is the features of matrix units that multiply bytes.
const matrixUnits = HasAMX | HasSME | HasSMEInt8

// unitKernel is the widest kernel for q8_0 weights on the matrix unit of an instruction set; nil
// where these features have none.
func unitKernel(isa ISA, f Features) *Spec {
	return largest(SpaceOf(f, isa, ComputeInt8, Q8_0, Spec.MatrixUnit))
}

// vectorKernel is the kernel with the largest tile of those that have no matrix unit.
func vectorKernel(isa ISA, f Features) *Spec {
	return largest(SpaceOf(f, isa, ComputeInt8, Q8_0, func(s Spec) bool { return !s.MatrixUnit() && s.OrdinaryForm() }))
}

// largest is the kernel whose tile has the most elements, the first of them; nil of none.
func largest(list []Spec) (best *Spec) {
	for i, s := range list {
		if best == nil || s.MR*s.NR > best.MR*best.NR {
			best = &list[i]
		}
	}
	return best
}

// unitPeak runs a kernel on operands of its own, which lie in the second-level cache as those of a
// slice do.
type unitPeak struct {
	kernel *Kernel
	args   GemmArgs // without C
	panels []byte
	a      []ActQ8
	c      sync.Pool // of []float32: of each caller alone
}

// Rows and depth of a call of unitPeak, those of a slice of many rows.
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
		a: make([]ActQ8, unitRows*unitDepth/ActQ8Block)}
	fillTrial(u.panels, u.a, spec.B)
	u.args = GemmArgs{A: unsafe.Pointer(&u.a[0]), AStride: unitDepth / ActQ8Block * ActQ8Bytes,
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

// fillTrial makes up panels with scales that are finite, and rows of activations.
func fillTrial(panels []byte, a []ActQ8, t WeightType) {
	seed := uint32(1)
	random := func() uint32 { seed = seed*1664525 + 1013904223; return seed >> 8 }
	for i := range panels {
		panels[i] = byte(random())
	}
	for at := 0; at < len(panels); at += PanelOffset(t, t.Block()) {
		for i := range t.Desc().HeadBytes() / 2 {
			panels[at+2*i+1] = byte(0x20 + random()%8)
		}
	}
	for i := range a {
		a[i].Scale = float32(random()%1000) / 1000
		for j := range a[i].Q {
			a[i].Q[j] = int8(random()%255) - 127
		}
		a[i].SetSums(a[i].Scale)
	}
}

// PanelReader multiplies one row by float32 panels as generation does, whose time is that of
// reading them. profiles/calibrate measures by it whether it pays to ask for weights ahead of their
// use. It is for one caller at a time.
type PanelReader struct {
	Spec Spec // float32 weights in as many panels side by side as tiles of few rows have
	// Bytes of panels that one call reads, some ten microseconds' worth: a region is read in whole
	// calls
	Bytes  int
	stride int // of panels
	kernel *Kernel
	row, c []float32
}

// Panels and depth of a call of a PanelReader, those of a slice of few rows.
const (
	streamPanels = 4
	streamDepth  = 1024
)

// NewPanelReader builds the kernel of an instruction set that asks for each line so many bytes
// ahead, once (MaxSinglePrefetch), or for none (0). Its Spec names plain Go where no code can be
// generated.
func NewPanelReader(isa ISA, ahead int) (*PanelReader, error) {
	widest := SpaceOf(Host(), isa, ComputeF32, F32, func(s Spec) bool {
		return s.OrdinaryForm() && !s.MatrixUnit() && s.NR <= streamPanels*PanelWidth
	})
	var s *Spec
	for i := range widest {
		if c := &widest[i]; s == nil || c.NR > s.NR || c.NR == s.NR && c.MR > s.MR {
			s = c
		}
	}
	if s == nil {
		return nil, fmt.Errorf("no %s kernel for float32 weights on this machine", isa)
	}
	spec := *s
	if spec.CanPrefetch() {
		spec = spec.WithPrefetch(ahead)
	}
	k, err := Build(spec)
	if err != nil {
		return nil, err
	}
	if !k.Native() {
		return &PanelReader{Spec: Spec{ISA: Go}}, nil
	}
	l := Layout{Type: F32, N: spec.NR, K: streamDepth}
	return &PanelReader{Spec: spec, Bytes: l.Bytes(), stride: l.PanelStride(), kernel: k,
		row: make([]float32, streamDepth), c: make([]float32, spec.NR)}, nil
}

// Native says that the reader runs generated code: it reads nothing otherwise.
func (r *PanelReader) Native() bool { return r.kernel != nil }

// Read reads one call's bytes from b, which holds finite numbers and lives off the Go heap or is
// kept alive.
func (r *PanelReader) Read(b []byte) {
	args := GemmArgs{A: unsafe.Pointer(&r.row[0]), AStride: 4 * streamDepth, B: unsafe.Pointer(&b[:r.Bytes][0]),
		BStride: r.stride, C: unsafe.Pointer(&r.c[0]), CStride: 4 * r.Spec.NR, M: 1, N: r.Spec.NR,
		K1: streamDepth}
	r.kernel.Run(&args)
	runtime.KeepAlive(r)
	runtime.KeepAlive(b)
}
