package gemm

import (
	"fmt"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Kernels of outer products and the path ComputeInt8K unpack each panel to planes of bytes
// (kernel.PlaneBytes).

// planesDepth is the number of k that are unpacked at a time.
const planesDepth = 1024

// unpackArgs are the arguments of the function that unpacks superblocks of a panel.
type unpackArgs struct {
	from, to, blocks uintptr
}

// PlanesArgs are the memory of a call.
type PlanesArgs struct {
	tile   kernel.TileArgs
	unpack unpackArgs
	data   [planesDepth / kernel.ActQ8Group * kernel.PlanesBlock]byte
}

var planesPool = sync.Pool{New: func() any { return new(PlanesArgs) }}

func runPlanes(k *kernel.Tiles, g kernel.GemmArgs) {
	unpack, err := planeMakers.Get(k.Spec.B)
	if err != nil {
		panic("a kernel was built without its unpacking: " + err.Error())
	}
	args := planesPool.Get().(*PlanesArgs)
	args.Run(k, g, unpack, callPlanes)
	planesPool.Put(args)
}

func callPlanes(f jit.Func, args unsafe.Pointer) { f.Call(args) }

// Run computes a call in pieces of k, each of which continues from the stored C.
func (args *PlanesArgs) Run(k *kernel.Tiles, g kernel.GemmArgs, unpack jit.Func,
	call func(f jit.Func, args unsafe.Pointer)) {
	b, k1 := k.Spec.B, g.K1
	panels := (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth
	for from := g.K0; from < k1; from = g.K1 {
		g.K0, g.K1 = from, min(from+planesDepth, k1)
		for p := range panels {
			args.unpack = unpackArgs{uintptr(g.B) + uintptr(p*g.BStride+b.PanelOffset(g.K0)),
				uintptr(unsafe.Pointer(&args.data)), uintptr((g.K1 - g.K0) / kernel.ActQ8Group)}
			call(unpack, unsafe.Pointer(&args.unpack))
			args.tile = k.Args(&g, min(qtype.PanelWidth, g.N-p*qtype.PanelWidth))
			args.tile.B = args.unpack.to
			args.tile.C += uintptr(4 * p * qtype.PanelWidth)
			for _, higher := range [...]bool{true, false} {
				if f := k.RowTiles(&args.tile, &g, 1, higher); f.Valid() {
					call(f, unsafe.Pointer(&args.tile))
				}
			}
		}
		g.Accumulate = true
	}
}

// planeMakers has the functions that unpack panels to planes, by weight type.
var planeMakers = jit.NewCache(func(b qtype.Type) (jit.Func, error) {
	code, err := PlaneMaker(b)
	if err != nil {
		return jit.Func{}, fmt.Errorf("unpacking %s to planes: %w", b, err)
	}
	return jit.LoadOne(code)
})

// PlaneMaker returns the code that unpacks superblocks of a panel to planes; see unpackArgs.
func PlaneMaker(b qtype.Type) ([]byte, error) {
	s := spec{kernel.Spec{ISA: kernel.NEON, Compute: kernel.ComputeInt8K, B: b, MR: 16, NR: qtype.PanelWidth,
		KU: qtype.SubBlockK, Form: kernel.Outer, Dot: kernel.MOPA}}
	a := asm.New(asm.SME)
	e := &planeUnpacker{&smeInt8{smeTile: &smeTile{Asm: a, s: s, lanes: s.smeLanes()}, Desc: b.Desc()}}
	e.function()
	return a.Finish()
}

// planeUnpacker generates that code.
type planeUnpacker struct{ *smeInt8 }

// Registers, next to those of smeInt8 that unpacking uses.
const (
	planeTo    = smeA
	planeLow   = smeStep // where the low bytes go
	planeEven  = asm.V(0)
	planeOdd   = asm.V(1)
	planeHighs = asm.V(2)
	planeLows  = asm.V(3)
	planeByte0 = asm.V(4) // 0x00FF in each 16 bits,
	planeByte1 = asm.V(5) // 0xFF00,
	planeBits  = asm.V(6) // and the bits of a low byte
	planeScale = asm.V(7) // of the span, twice in each word
)

func (e *planeUnpacker) function() {
	done := e.NewLabel()
	var t unpackArgs
	e.I(asm.SMSTART)
	e.count(smeAll, e.lanes)
	e.constants()
	e.I(asm.ZDUPB, planeByte0, asm.Imm(-1))
	e.I(asm.ZLSLH, planeByte1, planeByte0, asm.Imm(8))
	e.I(asm.ZLSRH, planeByte0, planeByte0, asm.Imm(8))
	e.I(asm.ZDUPB, planeBits, asm.Imm(1<<kernel.PlaneShift-1))
	e.get(smeB, unsafe.Offsetof(t.from))
	e.get(planeTo, unsafe.Offsetof(t.to))
	e.get(smeLeft, unsafe.Offsetof(t.blocks))
	e.CBZ(smeLeft, done)
	e.Loop(smeLeft, func() {
		e.MovX(smeHead, smeB)
		e.AddImm(smeB, smeB, e.HeadBytes())
		e.head()
		e.AddImm(planeLow, planeTo, kernel.PlaneBytes)
		e.MovImm(smeSubBlocks, e.SubBlocks())
		e.Loop(smeSubBlocks, func() {
			e.subBlock()
			e.AddImm(smeB, smeB, e.SubBlockBytes())
		})
		e.AddImm(planeTo, planeTo, kernel.PlanesBlock-kernel.PlaneBytes)
	})
	e.Bind(done)
	e.I(asm.SMSTOP)
	e.Ret()
}

// head writes the scales of a superblock and its offsets in pairs.
func (e *planeUnpacker) head() {
	store := func(z asm.V, at int) {
		e.AddImm(smeTmp, planeTo, at)
		e.I(asm.ST1W, z, smeAll, smeTmp)
	}
	e.blockScale(smeScale, 0, 0)
	if e.Unit != 0 {
		e.I(asm.ZFMUL, smeScale, smeScale, smeUnit)
	}
	store(smeScale, kernel.PlaneScales)
	if !e.Affine() {
		return
	}
	e.blockScale(smeScale, 0, 1)
	store(smeScale, kernel.PlaneScales+kernel.PlaneGroup)
	load := func(z asm.V, span int) {
		spans := qtype.SubBlockK / e.Span()
		at := span / spans * e.SubBlockBytes()
		if e.Subs != qtype.NibbleSubs {
			e.inSubBlock(at + qtype.PanelWidth)
			e.I(asm.LD1B, z, smeAll, smeTmp)
			return
		}
		e.inSubBlock(at + span%spans*qtype.PanelWidth)
		e.I(asm.LD1B, z, smeAll, smeTmp)
		e.I(asm.ZLSRS, z, z, asm.Imm(4))
	}
	for i := range e.offsetPairs() {
		load(smeT, 2*i)
		load(smeU, 2*i+1)
		e.I(asm.ZLSLS, smeU, smeU, asm.Imm(16))
		e.I(asm.ZORR, smeT, smeT, smeU)
		store(smeT, kernel.PlanePairs+kernel.PlaneGroup*i)
	}
}

// subBlock writes both planes of a sub-block and advances the pointers to them.
func (e *planeUnpacker) subBlock() {
	if e.Made() {
		e.make(0)
	}
	for g := range qtype.SubBlockK / 4 {
		if 4*g%e.Span() == 0 && e.Subs != qtype.NoSubs {
			e.integerScale(4 * g)
			e.I(asm.ZLSLS, smeU, smeT, asm.Imm(16))
			e.I(asm.ZLSRS, planeScale, smeU, asm.Imm(16))
			e.I(asm.ZORR, planeScale, planeScale, smeU)
		}
		e.numbers(0, g)
		e.I(asm.ZASRH, planeOdd, smeW, asm.Imm(8))
		e.I(asm.ZLSLH, planeEven, smeW, asm.Imm(8))
		e.I(asm.ZASRH, planeEven, planeEven, asm.Imm(8))
		if e.Subs != qtype.NoSubs {
			e.I(asm.ZMULH, planeEven, planeEven, planeScale)
			e.I(asm.ZMULH, planeOdd, planeOdd, planeScale)
		}
		e.split()
		e.I(asm.ST1W, planeHighs, smeAll, planeTo)
		e.I(asm.ST1W, planeLows, smeAll, planeLow)
		e.AddImm(planeTo, planeTo, kernel.PlaneGroup)
		e.AddImm(planeLow, planeLow, kernel.PlaneGroup)
	}
}

// split divides the scaled weights into bytes: the low seven bits, and the eight above them.
func (e *planeUnpacker) split() {
	e.I(asm.ZLSRH, planeHighs, planeEven, asm.Imm(kernel.PlaneShift))
	e.I(asm.ZAND, planeHighs, planeHighs, planeByte0)
	e.I(asm.ZLSLH, planeLows, planeOdd, asm.Imm(8-kernel.PlaneShift))
	e.I(asm.ZAND, planeLows, planeLows, planeByte1)
	e.I(asm.ZORR, planeHighs, planeHighs, planeLows)
	e.I(asm.ZAND, planeEven, planeEven, planeByte0)
	e.I(asm.ZLSLH, planeLows, planeOdd, asm.Imm(8))
	e.I(asm.ZORR, planeLows, planeLows, planeEven)
	e.I(asm.ZAND, planeLows, planeLows, planeBits)
}

// offsetPairs returns the number of pairs of spans of a superblock, which have offsets of their
// own.
func (e *smeInt8) offsetPairs() int { return kernel.ActQ8Group / e.Span() / 2 }
