package microkernel

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/internal/jit"
)

// Widener dequantizes a range of a packed panel into float32, laid out as an f32 panel: [k][16]float32. Where many rows of A
// share the panel, an f32 kernel that reads such a copy from the cache is faster than one that widens in registers for every
// row tile, and gives the same bits.
type Widener struct {
	isa  ISA
	b    WeightType
	code jit.Func
}

type widenArgs struct {
	src, dst   uintptr
	main, rest uintptr // turns of the loop, single k after it
}

type widenKey struct {
	isa ISA
	b   WeightType
}

var widenCache struct {
	sync.Mutex
	funcs map[widenKey]jit.Func
}

// NewWidener generates the widener of a weight type. Without executable memory, under the race detector and for the Go
// instruction set it is plain Go.
func NewWidener(isa ISA, b WeightType) (*Widener, error) {
	w := &Widener{isa: isa, b: b}
	switch {
	case !b.Known():
		return nil, fmt.Errorf("%s is no weight type", b)
	case !Host().Supports(isa):
		return nil, fmt.Errorf("widening for %s: this CPU has %q", isa, Host())
	case isa == Go || raceEnabled:
		return w, nil
	}
	widenCache.Lock()
	defer widenCache.Unlock()
	key := widenKey{isa, b}
	if f, ok := widenCache.funcs[key]; ok {
		w.code = f
		return w, nil
	}
	code, err := w.assemble()
	if err != nil {
		return nil, fmt.Errorf("widening %s for %s: %w", b, isa, err)
	}
	f, err := load(code)
	if errors.Is(err, jit.ErrNoExec) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	if widenCache.funcs == nil {
		widenCache.funcs = map[widenKey]jit.Func{}
	}
	widenCache.funcs[key] = f[0]
	w.code = f[0]
	return w, nil
}

func (w *Widener) assemble() ([]byte, error) {
	if w.isa == NEON {
		return assembleNEON(a64.Base, func(a *a64.Asm) { emitNEONWiden(a, w.b) })
	}
	return assemble(w.isa, func(a *asm.Asm) { emitWiden(a, w.isa, w.b) })
}

// Run widens the elements [k0, k1) of the panel into dst, 64 bytes for each k. k0 is a multiple of KStep, and k1 too unless
// it is an odd K.
func (w *Widener) Run(dst, panel unsafe.Pointer, k0, k1 int) {
	if !w.code.Valid() {
		unpackRows(w.b, panel, k0, unsafe.Slice((*panelRow)(dst), k1-k0))
		return
	}
	n := widenStep(w.b)
	args := widenArgs{
		src: uintptr(panel) + uintptr(PanelOffset(w.b, k0)), dst: uintptr(dst),
		main: uintptr((k1 - k0) / n), rest: uintptr((k1 - k0) % n),
	}
	w.code.Call(unsafe.Pointer(&args))
	runtime.KeepAlive(dst)
	runtime.KeepAlive(panel)
}

// widenStep is the k of one turn.
func widenStep(b WeightType) int { return max(b.Block(), 8) }

func emitWiden(a *asm.Asm, isa ISA, b WeightType) {
	const rDst = asm.R8
	var t widenArgs
	e := &emitter{Asm: a, s: Spec{ISA: isa, B: b, MR: 1, NR: PanelWidth}, v: PanelWidth / isa.Lanes(), bBase: []asm.Reg{rB}, free: pointerPool[1:]}
	e.Mov(rB, e.arg(unsafe.Offsetof(t.src)))
	e.Mov(rDst, e.arg(unsafe.Offsetof(t.dst)))
	put := func(j, k int, w asm.Vec) { e.I(asm.VMOVUPS, asm.At(rDst, 64*k+j*w.Bytes()), w) }
	step := widenStep(b)
	next := func(k int) {
		e.advance(e.bBase, PanelOffset(b, k))
		e.Add(rDst, asm.Imm32(64*k))
	}
	if b.Quantized() {
		u := newUnpacker(e, e.v)
		u.setup()
		u.blocks(func(block func()) { e.loop(unsafe.Offsetof(t.main), block) }, func() {
			for k := range turnK {
				for j := range e.v {
					if k%u.Span() == 0 {
						u.scales(j, j, k)
					}
					u.value(j, j, k)
					put(j, k, u.w[j])
				}
			}
			e.Add(rDst, asm.Imm32(64*turnK))
		})
	} else {
		f := &floatTile{emitter: e}
		if b == BF16 {
			f.high = e.vec()
		}
		w := e.vecs(8)
		f.setup()
		turn := func(n int) {
			for k := range n {
				for j := range e.v {
					x := w[(k*e.v+j)%len(w)]
					f.widen(x, j, k)
					put(j, k, x)
				}
			}
		}
		e.loop(unsafe.Offsetof(t.main), func() { turn(step); next(step) })
		widenRest(e, turn, next, b)
	}
	e.VZeroUpper()
	e.Ret()
}

// widenRest is the k after the last whole turn: singly, or for pairs of bf16 two at a time and the last alone.
func widenRest(e *emitter, turn, next func(int), b WeightType) {
	var t widenArgs
	rest := unsafe.Offsetof(t.rest)
	if b != BF16 {
		e.loop(rest, func() { turn(1); next(1) })
		return
	}
	done, top, last := e.NewLabel(), e.NewLabel(), e.NewLabel()
	e.Mov(rCount, e.arg(rest))
	e.Bind(top)
	e.Cmp(rCount, asm.Imm32(2))
	e.Jcc(asm.Below, last)
	turn(2)
	next(2)
	e.Sub(rCount, asm.Imm32(2))
	e.Jmp(top)
	e.Bind(last)
	e.Test(rCount, rCount)
	e.Jcc(asm.Zero, done)
	turn(1)
	e.Bind(done)
}
