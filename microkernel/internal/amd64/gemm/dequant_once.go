package gemm

import (
	"fmt"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/matrix"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Kernels of form DequantOnce dequantize a piece of a panel group to bytes and float32 scales
// before its row tiles start; the tiles read those instead of packed weights. The dequantization is
// shared by all rows, and the registers it would need hold more rows.
//
//	sub-block of 32 k  [8][16 columns][4 k]uint8  [spans][16 columns]float32  and offsets like scales
const (
	cacheDepth   = 512 // k of a piece: two panels of it and their rows fit a first-level cache of 32 KiB
	cacheLine    = 64
	cacheNumbers = qtype.SubBlockK * qtype.PanelWidth // of the numbers of a sub-block
	cachePanels  = 4
	cacheSpans   = 2 // the most of a sub-block
	cacheBytes   = cachePanels * cacheDepth / qtype.SubBlockK * (cacheNumbers + 2*cacheSpans*cacheLine)
)

// argsBytes is the size of the arguments before the dequantized weights.
const argsBytes = unsafe.Sizeof(kernel.TileArgs{}) + unsafe.Sizeof(matrix.UnpackArgs{})

// dequantOnceArgs are the arguments of such a tile function, followed by the dequantized weights.
// They start at a multiple of a cache line.
type dequantOnceArgs struct {
	kernel.TileArgs
	unpack matrix.UnpackArgs
	_      [(cacheLine - argsBytes%cacheLine) % cacheLine]byte
	bytes  [cacheBytes]byte
}

// cachePool reuses arguments, as amxPool does.
var cachePool = sync.Pool{New: func() any {
	b := make([]byte, unsafe.Sizeof(dequantOnceArgs{})+cacheLine)
	return (*dequantOnceArgs)(unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%cacheLine]))
}}

// validateDequantOnce returns why the form does not support the spec, or nil.
func (s spec) validateDequantOnce() error {
	switch {
	case !s.superblock() || s.Dot != kernel.VNNI:
		return fmt.Errorf("kernel form \"once\" exists for the path %s and dot product %s only",
			kernel.ComputeInt8Superblock, kernel.VNNI)
	case s.Prefetches():
		return fmt.Errorf("kernel form \"once\" does not support software prefetch")
	case s.NR > cachePanels*qtype.PanelWidth:
		return fmt.Errorf("kernel form \"once\" has at most %d columns", cachePanels*qtype.PanelWidth)
	}
	return nil
}

// runDequantOnce computes one call of such a kernel in pieces of k, each of which continues from
// the stored C.
func runDequantOnce(k *kernel.Tiles, g kernel.GemmArgs) {
	unpack, err := dequantizers.Get(k.Spec.B)
	if err != nil {
		panic("a kernel was built without what unpacks for it: " + err.Error())
	}
	args := cachePool.Get().(*dequantOnceArgs)
	args.run(k, g, unpack)
	cachePool.Put(args)
}

func (args *dequantOnceArgs) run(k *kernel.Tiles, g kernel.GemmArgs, unpack jit.Func) {
	b := k.Spec.B
	panels, k1 := (g.N+qtype.PanelWidth-1)/qtype.PanelWidth, g.K1
	for from := g.K0; from < k1; from = g.K1 {
		g.K0, g.K1 = from, min(from+cacheDepth, k1)
		size := (g.K1 - g.K0) / qtype.SubBlockK * cacheSubBlock(b)
		for p := range panels {
			args.unpack = matrix.UnpackArgs{From: uintptr(g.B) + uintptr(p*g.BStride+b.PanelOffset(g.K0)),
				To:     uintptr(unsafe.Pointer(&args.bytes)) + uintptr(p*size),
				Blocks: uintptr((g.K1 - g.K0) / kernel.ActQ8Group)}
			callDequantizer(unpack, &args.unpack)
		}
		args.TileArgs = k.Args(&g, g.N-(panels-1)*qtype.PanelWidth)
		args.B, args.BStride = uintptr(unsafe.Pointer(&args.bytes)), uintptr(size)
		for _, higher := range [...]bool{true, false} {
			if f := k.RowTiles(&args.TileArgs, &g, panels, higher); f.Valid() {
				callDequantOnce(f, args)
			}
		}
		g.Accumulate = true
	}
}

func callDequantOnce(f jit.Func, args *dequantOnceArgs)   { f.Call(unsafe.Pointer(args)) }
func callDequantizer(f jit.Func, args *matrix.UnpackArgs) { f.Call(unsafe.Pointer(args)) }

// cacheSpansOf returns the number of spans of a sub-block that have scales of their own.
func cacheSpansOf(d *qtype.Desc) int { return qtype.SubBlockK / d.Span() }

// cacheSubBlock returns the bytes of a dequantized sub-block.
func cacheSubBlock(b qtype.Type) int {
	d := b.Desc()
	n := cacheSpansOf(d)
	if d.Affine() {
		n *= 2
	}
	return cacheNumbers + n*cacheLine
}

// cacheScale returns the offset of the scale of the span at k0.
func cacheScale(d *qtype.Desc, k0 int) int { return cacheNumbers + k0/d.Span()*cacheLine }

// cacheOffset returns the offset of the weight offset of the span at k0.
func cacheOffset(d *qtype.Desc, k0 int) int { return cacheScale(d, k0) + cacheSpansOf(d)*cacheLine }

// dequantOnceTile is the tile of the chain "group" over dequantized sub-blocks.
type dequantOnceTile struct {
	int8Tile
	turns asm.Reg // sub-blocks left of a block
}

func newDequantOnce(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	e := &dequantOnceTile{int8Tile: int8Tile{subBlocks: subBlocks{emitter: newEmitter(a, s), Desc: s.B.Desc()}}}
	e.dot = e.vecs(s.MR * e.v)
	e.w = e.vecs(e.v)
	e.x = e.vecs(1)
	e.cRow, e.turns = e.pointer(), e.pointer()
	e.begin = e.startGroups
	return e.emitter, func() { e.function(func() {}, e.body) }
}

func (e *dequantOnceTile) body() {
	e.mainLoop(func() {
		e.MovImm(e.turns, kernel.ActQ8Group/qtype.SubBlockK)
		top := e.Here()
		e.Times(kernel.ActQ8Group/qtype.SubBlockK, func() {
			for k := 0; k < qtype.SubBlockK; k += e.Span() {
				e.part(k)
			}
			e.advance(e.aBase, kernel.ActQ8Bytes)
			e.advanceB(cacheSubBlock(e.s.B))
			e.Dec(e.turns)
		})
		e.Jcc(asm.NotZero, top)
		e.endGroup()
	})
}

// part is int8Tile.part without dequantization.
func (e *dequantOnceTile) part(k0 int) {
	e.start0(k0)
	for g := k0 / 4; g < (k0+e.Span())/4; g++ {
		for j, w := range e.w {
			e.I(asm.VMOVUPS, w, e.b(j, cacheLine*g, cacheLine))
		}
		for r := range e.s.MR {
			e.row(r, g, g == k0/4)
		}
	}
	for j, w := range e.w {
		e.I(asm.VMOVUPS, w, e.b(j, cacheScale(e.Desc, k0), cacheLine))
	}
	for i, d := range e.dot {
		e.I(asm.VCVTDQ2PS, d, d)
		e.I(asm.VFMADD231PS, e.acc[i], d, e.w[i%e.v])
	}
	if !e.Affine() {
		return
	}
	for j, w := range e.w {
		e.I(asm.VMOVUPS, w, e.b(j, cacheOffset(e.Desc, k0), cacheLine))
	}
	e.addOffsets(k0)
}

// dequantizers has the functions that dequantize a panel, by weight type. Assemble gets them too,
// so that a kernel that runs has its own.
var dequantizers = jit.NewCache(func(b qtype.Type) (jit.Func, error) {
	code, err := dequantizer(b)
	if err != nil {
		return jit.Func{}, fmt.Errorf("dequantizing %s: %w", b, err)
	}
	return jit.LoadOne(code)
})

// dequantizer returns the code that dequantizes blocks of a panel.
func dequantizer(b qtype.Type) ([]byte, error) {
	a := asm.New(asm.AVX512)
	_, emit := newDequantizer(a, b)
	emit()
	return a.Finish()
}

// sharedRows is the number of rows assumed to share a dequantization when instructions are
// counted.
const sharedRows = 128

// dequantOnceCounts adds to the instructions of an iteration of a tile its share of the
// dequantization.
func dequantOnceCounts(k kernel.Spec, tile code.Counts) code.Counts {
	a := asm.New(asm.AVX512)
	_, emit := newDequantizer(a, k.B)
	emit()
	for class, n := range a.Counts() {
		tile[class] += n * float64(k.NR/qtype.PanelWidth*k.MR) / sharedRows
	}
	return tile
}

func newDequantizer(a *asm.Asm, b qtype.Type) (_ *emitter, emit func()) {
	s := spec{kernel.Spec{ISA: kernel.AVX512, Compute: kernel.ComputeInt8Superblock, B: b, MR: 1, NR: qtype.PanelWidth,
		KU: qtype.SubBlockK, Form: kernel.Load, Dot: kernel.VNNI}}
	e := newInt8Tile(a, s)
	var args matrix.UnpackArgs
	to := e.aBase[0]
	return e.emitter, func() {
		e.Mov(rB, e.arg(unsafe.Offsetof(args.From)))
		e.Mov(to, e.arg(unsafe.Offsetof(args.To)))
		e.setup()
		e.atTail = nil
		e.blocks(func(block func()) {
			e.loop(unsafe.Offsetof(args.Blocks), func() { e.Counted(block) })
		}, func() {
			e.unpackSubBlock(to)
			e.Add(to, asm.Imm32(int32(cacheSubBlock(b))))
		})
		e.VZeroUpper()
		e.Ret()
	}
}

// unpackSubBlock writes the current sub-block.
func (e *int8Tile) unpackSubBlock(to asm.Reg) {
	for j := range e.made {
		e.make(j, j, e.x[0], e.t[0])
	}
	for g := range qtype.SubBlockK / 4 {
		e.weights(0, 0, g)
		e.I(asm.VMOVUPS, asm.At(to, cacheLine*g), e.w[0])
	}
	for k0 := 0; k0 < qtype.SubBlockK; k0 += e.Span() {
		e.scale(e.w[0], 0, k0)
		e.I(asm.VMOVUPS, asm.At(to, cacheScale(e.Desc, k0)), e.w[0])
		if e.Affine() {
			e.offset(e.w[0], 0, k0)
			e.I(asm.VMOVUPS, asm.At(to, cacheOffset(e.Desc, k0)), e.w[0])
		}
	}
}
