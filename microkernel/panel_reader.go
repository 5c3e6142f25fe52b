package microkernel

import (
	"fmt"
	"runtime"
	"unsafe"
)

// PanelReader multiplies one row by float32 panels, as generation does; its time is that of
// reading them. profiles/calibrate uses it to measure whether software prefetch pays off. It is
// not safe for concurrent use.
type PanelReader struct {
	Spec Spec // kernel for float32 weights with as many panels as tiles of few rows have
	// Bytes is the length of the panels that one call reads, about ten microseconds. A region is
	// read in whole calls.
	Bytes  int
	stride int // of panels
	kernel *Kernel
	row, c []float32
}

// Panels and depth of a call of a PanelReader: those of a slice of few rows.
const (
	streamPanels = 4
	streamDepth  = 1024
)

// NewPanelReader builds the kernel of an instruction set with a prefetch distance in bytes, at
// most MaxSinglePrefetch, or without software prefetch (0). If no code can be generated, its Spec
// names plain Go.
func NewPanelReader(isa ISA, distance int) (*PanelReader, error) {
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
		spec = spec.WithPrefetch(distance)
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

// Native reports whether the reader runs generated code. Otherwise it reads nothing.
func (r *PanelReader) Native() bool { return r.kernel != nil }

// Read reads Bytes bytes from b, which holds finite numbers and is off the Go heap or kept alive.
func (r *PanelReader) Read(b []byte) {
	args := GemmArgs{A: unsafe.Pointer(&r.row[0]), AStride: 4 * streamDepth, B: unsafe.Pointer(&b[:r.Bytes][0]),
		BStride: r.stride, C: unsafe.Pointer(&r.c[0]), CStride: 4 * r.Spec.NR, M: 1, N: r.Spec.NR,
		K1: streamDepth}
	r.kernel.Run(&args)
	runtime.KeepAlive(r)
	runtime.KeepAlive(b)
}
