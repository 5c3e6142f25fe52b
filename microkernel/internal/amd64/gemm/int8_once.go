package gemm

import (
	"fmt"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Kernels of form Once unpack a piece of a panel group before its row tiles begin, into bytes and
// float32 scales that the tiles read in the place of packed weights. What tiles of other forms do
// anew for every few rows is done once for all of them, and what it took in registers goes to rows.
//
//	sub-block of 32 k  [8][16 columns][4 k]uint8  [spans][16 columns]float32  and offsets like scales
const (
	onceDepth  = 512 // k of a piece: two panels of it and their rows leave room in a first-level cache of 32 KiB
	onceLine   = 64
	onceBytes  = qtype.SubBlockK * qtype.PanelWidth // of the numbers of a sub-block
	oncePanels = 4
	onceSpans  = 2 // the most of a sub-block
	onceRoom   = oncePanels * onceDepth / qtype.SubBlockK * (onceBytes + 2*onceSpans*onceLine)
)

// onceArgs is what such a tile function gets, and behind it what the unpacking does. It begins at a
// multiple of a line.
type onceArgs struct {
	kernel.TileArgs
	unpack unpackArgs
	_      [(onceLine - (unsafe.Sizeof(kernel.TileArgs{})+unsafe.Sizeof(unpackArgs{}))%onceLine) % onceLine]byte
	bytes  [onceRoom]byte
}

// unpackArgs is what the unpacking of a panel gets.
type unpackArgs struct {
	from, to uintptr
	blocks   uintptr // of 256 k
}

// onceRooms keeps arguments for later calls, as amxRoom does.
var onceRooms = sync.Pool{New: func() any {
	b := make([]byte, unsafe.Sizeof(onceArgs{})+onceLine)
	return (*onceArgs)(unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%onceLine]))
}}

// validateOnce says what the form is not made for.
func (s spec) validateOnce() error {
	switch {
	case !s.long() || s.Dot != kernel.VNNI:
		return fmt.Errorf("kernels that unpack once are of the path %s and dot product %s", kernel.ComputeInt8Long,
			kernel.VNNI)
	case s.Prefetches():
		return fmt.Errorf("kernels that unpack once do not prefetch")
	case s.NR > oncePanels*qtype.PanelWidth:
		return fmt.Errorf("kernels that unpack once have at most %d columns", oncePanels*qtype.PanelWidth)
	}
	return nil
}

// once says that the tile reads what was unpacked.
func (s spec) once() bool { return s.Form == kernel.Once }

// runOnce is one call of such a kernel, in pieces of k each of which goes on from the stored C.
func runOnce(k *kernel.Tiles, g kernel.GemmArgs) {
	unpack, err := unpackerOf(k.Spec.B)
	if err != nil {
		panic("a kernel was built without what unpacks for it: " + err.Error())
	}
	args := onceRooms.Get().(*onceArgs)
	args.run(k, g, unpack)
	onceRooms.Put(args)
}

func (args *onceArgs) run(k *kernel.Tiles, g kernel.GemmArgs, unpack jit.Func) {
	b := k.Spec.B
	panels, k1 := (g.N+qtype.PanelWidth-1)/qtype.PanelWidth, g.K1
	for from := g.K0; from < k1; from = g.K1 {
		g.K0, g.K1 = from, min(from+onceDepth, k1)
		size := (g.K1 - g.K0) / qtype.SubBlockK * onceSubBlock(b)
		for p := range panels {
			args.unpack = unpackArgs{uintptr(g.B) + uintptr(p*g.BStride+b.PanelOffset(g.K0)),
				uintptr(unsafe.Pointer(&args.bytes)) + uintptr(p*size), uintptr((g.K1 - g.K0) / kernel.ActQ8Group)}
			callUnpack(unpack, &args.unpack)
		}
		args.TileArgs = k.Args(&g, g.N-(panels-1)*qtype.PanelWidth)
		args.B, args.BStride = uintptr(unsafe.Pointer(&args.bytes)), uintptr(size)
		for _, higher := range [...]bool{true, false} {
			if f := k.RowTiles(&args.TileArgs, &g, panels, higher); f.Valid() {
				callOnce(f, args)
			}
		}
		g.Accumulate = true
	}
}

func callOnce(f jit.Func, args *onceArgs)     { f.Call(unsafe.Pointer(args)) }
func callUnpack(f jit.Func, args *unpackArgs) { f.Call(unsafe.Pointer(args)) }

// onceSpansOf is how many spans of a sub-block have scales of their own.
func onceSpansOf(d *qtype.Desc) int { return qtype.SubBlockK / d.Span() }

// onceSubBlock is the bytes of a sub-block that was unpacked.
func onceSubBlock(b qtype.Type) int {
	d := b.Desc()
	n := onceSpansOf(d)
	if d.Affine() {
		n *= 2
	}
	return onceBytes + n*onceLine
}

// onceScale is where the scale of the span at k0 is, onceOffset its offset.
func onceScale(d *qtype.Desc, k0 int) int { return onceBytes + k0/d.Span()*onceLine }

// onceOffset: see onceScale.
func onceOffset(d *qtype.Desc, k0 int) int { return onceScale(d, k0) + onceSpansOf(d)*onceLine }

// onceTile is the tile of the chain "group" over sub-blocks that were unpacked.
type onceTile struct {
	int8Tile
	turns asm.Reg // sub-blocks left of a block
}

func newOnce(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	e := &onceTile{int8Tile: int8Tile{subBlocks: subBlocks{emitter: newEmitter(a, s), Desc: s.B.Desc()}}}
	e.dot = e.vecs(s.MR * e.v)
	e.w = e.vecs(e.v)
	e.x = e.vecs(1)
	e.cRow, e.turns = e.pointer(), e.pointer()
	e.begin = e.startGroups
	return e.emitter, func() { e.function(func() {}, e.body) }
}

func (e *onceTile) body() {
	e.mainLoop(func() {
		e.MovImm(e.turns, kernel.ActQ8Group/qtype.SubBlockK)
		top := e.Here()
		e.Times(kernel.ActQ8Group/qtype.SubBlockK, func() {
			for k := 0; k < qtype.SubBlockK; k += e.Span() {
				e.part(k)
			}
			e.advance(e.aBase, kernel.ActQ8Bytes)
			e.advanceB(onceSubBlock(e.s.B))
			e.Dec(e.turns)
		})
		e.Jcc(asm.NotZero, top)
		e.endGroup()
	})
}

// part is int8Tile.part without unpacking.
func (e *onceTile) part(k0 int) {
	e.start0(k0)
	for g := k0 / 4; g < (k0+e.Span())/4; g++ {
		for j, w := range e.w {
			e.I(asm.VMOVUPS, w, e.b(j, onceLine*g, onceLine))
		}
		for r := range e.s.MR {
			e.row(r, g, g == k0/4)
		}
	}
	for j, w := range e.w {
		e.I(asm.VMOVUPS, w, e.b(j, onceScale(e.Desc, k0), onceLine))
	}
	for i, d := range e.dot {
		e.I(asm.VCVTDQ2PS, d, d)
		e.I(asm.VFMADD231PS, e.acc[i], d, e.w[i%e.v])
	}
	if !e.Affine() {
		return
	}
	for j, w := range e.w {
		e.I(asm.VMOVUPS, w, e.b(j, onceOffset(e.Desc, k0), onceLine))
	}
	e.addOffsets(k0)
}

// unpackers are the functions that unpack a panel, by weight type.
var unpackers sync.Map // qtype.Type -> func() (jit.Func, error)

// unpackerOf generates it once. Assembling a kernel asks for it, too, so that a kernel that runs
// has it.
func unpackerOf(b qtype.Type) (jit.Func, error) {
	if once, ok := unpackers.Load(b); ok {
		return once.(func() (jit.Func, error))()
	}
	build := sync.OnceValues(func() (jit.Func, error) {
		code, err := unpacking(b)
		if err != nil {
			return jit.Func{}, fmt.Errorf("unpacking %s: %w", b, err)
		}
		loaded, err := jit.Load(code)
		if err != nil {
			return jit.Func{}, err
		}
		return loaded[0], nil
	})
	once, _ := unpackers.LoadOrStore(b, build)
	return once.(func() (jit.Func, error))()
}

// unpacking is the code that unpacks blocks of a panel.
func unpacking(b qtype.Type) ([]byte, error) {
	a := asm.New(asm.AVX512)
	_, emit := newUnpacking(a, b)
	emit()
	return a.Finish()
}

// onceRows is the rows of a call that share an unpacking, where instructions are counted.
const onceRows = 128

// onceCounts adds to the instructions of an iteration of a tile its share of the unpacking.
func onceCounts(k kernel.Spec, tile code.Counts) code.Counts {
	a := asm.New(asm.AVX512)
	_, emit := newUnpacking(a, k.B)
	emit()
	for class, n := range a.Counts() {
		tile[class] += n * float64(k.NR/qtype.PanelWidth*k.MR) / onceRows
	}
	return tile
}

func newUnpacking(a *asm.Asm, b qtype.Type) (_ *emitter, emit func()) {
	s := spec{kernel.Spec{ISA: kernel.AVX512, Compute: kernel.ComputeInt8Long, B: b, MR: 1, NR: qtype.PanelWidth,
		KU: qtype.SubBlockK, Form: kernel.Load, Dot: kernel.VNNI}}
	e := newInt8Tile(a, s)
	var args unpackArgs
	to := e.aBase[0]
	return e.emitter, func() {
		e.Mov(rB, e.arg(unsafe.Offsetof(args.from)))
		e.Mov(to, e.arg(unsafe.Offsetof(args.to)))
		e.setup()
		e.atTail = nil
		e.blocks(func(block func()) {
			e.loop(unsafe.Offsetof(args.blocks), func() { e.Counted(block) })
		}, func() {
			e.unpackSubBlock(to)
			e.Add(to, asm.Imm32(int32(onceSubBlock(b))))
		})
		e.VZeroUpper()
		e.Ret()
	}
}

// unpackSubBlock writes the sub-block at hand.
func (e *int8Tile) unpackSubBlock(to asm.Reg) {
	for j := range e.made {
		e.make(j, j, e.x[0], e.t[0])
	}
	for g := range qtype.SubBlockK / 4 {
		e.weights(0, 0, g)
		e.I(asm.VMOVUPS, asm.At(to, onceLine*g), e.w[0])
	}
	for k0 := 0; k0 < qtype.SubBlockK; k0 += e.Span() {
		e.scale(e.w[0], 0, k0)
		e.I(asm.VMOVUPS, asm.At(to, onceScale(e.Desc, k0)), e.w[0])
		if e.Affine() {
			e.offset(e.w[0], 0, k0)
			e.I(asm.VMOVUPS, asm.At(to, onceOffset(e.Desc, k0)), e.w[0])
		}
	}
}
