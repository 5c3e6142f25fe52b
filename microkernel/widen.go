package microkernel

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// Widener dequantizes a range of a packed panel to float32, laid out as an f32 panel:
// [k][16]float32. If many rows of A share the panel, an f32 kernel that reads such a copy from the
// cache is faster than one that dequantizes in registers for every row tile. It computes the same
// bits.
type Widener struct {
	isa  ISA
	b    WeightType
	code jit.Func
}

type widenKey struct {
	isa ISA
	b   WeightType
}

// wideners has the generated functions.
var wideners = jit.NewCache(func(k widenKey) (jit.Func, error) {
	code, err := k.isa.Target().GEMM.Widen(k.b)
	if err != nil {
		return jit.Func{}, fmt.Errorf("widening %s for %s: %w", k.b, k.isa, err)
	}
	return jit.LoadOne(code)
})

// NewWidener generates the widener of a weight type. It is plain Go for the Go instruction set,
// without executable memory and under the race detector.
func NewWidener(isa ISA, b WeightType) (*Widener, error) {
	w := &Widener{isa: isa, b: b}
	switch {
	case !b.Known():
		return nil, fmt.Errorf("weight type %s is unknown", b)
	case !Host().Supports(isa):
		return nil, fmt.Errorf("widening for %s: this CPU has %q", isa, Host())
	case !isa.Generates() || jit.Race:
		return w, nil
	}
	var err error
	w.code, err = wideners.Get(widenKey{isa, b})
	if err != nil && !errors.Is(err, jit.ErrNoExec) {
		return nil, err
	}
	return w, nil
}

// Run dequantizes the elements [k0, k1) of the panel to dst, 64 bytes for each k. k0 is a multiple
// of KStep, and so is k1 unless it is an odd K.
func (w *Widener) Run(dst, panel unsafe.Pointer, k0, k1 int) {
	if !w.code.Valid() {
		ref.Rows(w.b, panel, k0, unsafe.Slice((*ref.Row)(dst), k1-k0))
		return
	}
	n := kernel.WidenStep(w.b)
	args := kernel.WidenArgs{
		Src: uintptr(panel) + uintptr(PanelOffset(w.b, k0)), Dst: uintptr(dst),
		Main: uintptr((k1 - k0) / n), Rest: uintptr((k1 - k0) % n),
	}
	w.code.Call(unsafe.Pointer(&args))
	runtime.KeepAlive(dst)
	runtime.KeepAlive(panel)
}
