package gemm

import (
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/matrix"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// planeMakers has the functions that unpack panels to planes (package matrix), by weight type.
var planeMakers = jit.NewCache(func(b qtype.Type) (jit.Func, error) {
	code, err := planeMaker(b)
	if err != nil {
		return jit.Func{}, fmt.Errorf("unpacking %s to planes: %w", b, err)
	}
	return jit.LoadOne(code)
})

// runPlanes computes one call of a kernel of Dot AMX and the path ComputeInt8K.
func runPlanes(k *kernel.Tiles, g *kernel.GemmArgs) {
	unpack, err := planeMakers.Get(k.Spec.B)
	if err != nil {
		panic("a kernel was built without its unpacking: " + err.Error())
	}
	matrix.RunPlanes(k, g, unpack)
}

// planeMaker returns the code that unpacks superblocks of a panel to planes; see matrix.UnpackArgs.
func planeMaker(b qtype.Type) ([]byte, error) {
	a := asm.New(asm.AVX512)
	newPlaneUnpacker(a, b).function()
	return a.Finish()
}

// planeUnpacker generates that code.
type planeUnpacker struct {
	amxTile
	scale16  asm.Vec // scales of the span, twice in each word
	twice    asm.Vec // the shuffle that doubles them
	low      asm.Vec // 0x00FF in each 16 bits,
	bits     asm.Vec // and the bits of a low byte
	even     asm.Vec // of the scaled weights,
	odd      asm.Vec // which are 16 bits each
	high, lo asm.Vec
}

func newPlaneUnpacker(a *asm.Asm, b qtype.Type) *planeUnpacker {
	s := spec{kernel.Spec{ISA: kernel.AVX512, Compute: kernel.ComputeInt8K, B: b, MR: 1, NR: qtype.PanelWidth,
		KU: qtype.SubBlockK, Form: kernel.Load, Dot: kernel.AMX}}
	e := &planeUnpacker{amxTile: amxTile{int8Tile: int8Tile{subBlocks: newSubBlocks(newEmitter(a, s)),
		form: s.amxForm()}}}
	e.w, e.x, e.t = e.vecs(1), e.vecs(1), e.vecs(e.form.temps)
	for _, v := range []*asm.Vec{&e.scale16, &e.twice, &e.low, &e.bits, &e.even, &e.odd, &e.high, &e.lo} {
		*v = e.vec()
	}
	e.forUnpacking()
	return e
}

// unpackBetween allocates the registers of unpacking between the products of a tile: constants and
// the scales of a span from the last register down, and temporaries of the tile.
func unpackBetween(a *asm.Asm, b qtype.Type, temps []asm.Vec) *matrix.Unpacking {
	e := newPlaneUnpacker(a, b)
	for _, v := range []*asm.Vec{&e.w[0], &e.x[0], &e.t[0], &e.even, &e.odd, &e.high, &e.lo} {
		*v, temps = temps[0], temps[1:]
	}
	lowest := e.s.ISA.Registers() - e.unpacking
	for _, v := range []*asm.Vec{&e.scale16, &e.twice, &e.low, &e.bits} {
		lowest--
		*v = e.reg(lowest)
	}
	e.bBase = []asm.Reg{matrix.UnpackFrom}
	return &matrix.Unpacking{Lowest: lowest, Constants: e.constants,
		Head: func() {
			e.advanceB(e.HeadBytes())
			e.MovImm(e.subBlocks.head, uint64(-int64(e.HeadBytes())))
			e.block(matrix.UnpackTo)
		},
		SubBlock: func() []func() {
			return append(e.subBlock(matrix.UnpackTo), func() { e.advanceB(e.SubBlockBytes()) })
		}}
}

// function unpacks as many superblocks as the arguments say.
func (e *planeUnpacker) function() {
	var args matrix.UnpackArgs
	to := e.aBase[0]
	e.Mov(rB, e.arg(unsafe.Offsetof(args.From)))
	e.Mov(to, e.arg(unsafe.Offsetof(args.To)))
	e.constants()
	e.atHead = func() { e.block(to) }
	e.atTail = func() { e.Add(to, asm.Imm32(kernel.PlanesBlock-kernel.PlaneBytes)) }
	e.blocks(func(block func()) { e.loop(unsafe.Offsetof(args.Blocks), func() { e.Counted(block) }) }, func() {
		for _, step := range e.subBlock(to) {
			step()
		}
	})
	e.VZeroUpper()
	e.Ret()
}

// constants loads the constants.
func (e *planeUnpacker) constants() {
	e.setup()
	if e.ZeroPoint > 0 {
		e.I(asm.VPBROADCASTD, e.zeros, e.ConstU32(uint32(e.ZeroPoint)*0x01010101))
	}
	e.I(asm.VPBROADCASTD, e.low, e.ConstU32(0x00FF00FF))
	e.I(asm.VPBROADCASTD, e.bits, e.ConstU32((1<<kernel.PlaneShift-1)*0x01010101))
	words := make([]uint32, 16)
	for i := range words {
		words[i] = 0x01000100 + uint32(i%4*4)*0x01010101
	}
	e.I(asm.VMOVUPS, e.twice, e.ConstU32s(words...))
}

// block writes the scales of a superblock and its offsets in pairs. The panel pointer is at its
// first sub-block.
func (e *planeUnpacker) block(to asm.Reg) {
	w, x := e.w[0], e.x[0]
	for n := range e.BlockScales {
		e.loadBlockScale(w, 0, n)
		e.I(asm.VMOVUPS, asm.At(to, kernel.PlaneScales+cacheLine*n), w)
	}
	if !e.Affine() {
		return
	}
	// the offset of span i of the superblock, in the upper bits of its byte for NibbleSubs
	load := func(v asm.Vec, i int) {
		spans := qtype.SubBlockK / e.Span()
		at := i / spans * e.SubBlockBytes()
		if e.Subs == qtype.NibbleSubs {
			e.I(asm.VPMOVZXBD, v, e.b(0, at+i%spans*qtype.PanelWidth, 16))
			e.I(asm.VPSRLD, v, v, asm.Imm(4))
			return
		}
		e.I(asm.VPMOVZXBD, v, e.b(0, at+qtype.PanelWidth, 16))
	}
	for i := range kernel.ActQ8Group / e.Span() / 2 {
		load(w, 2*i)
		load(x, 2*i+1)
		e.I(asm.VPSLLD, x, x, asm.Imm(16))
		e.I(asm.VPORD, w, w, x)
		e.I(asm.VMOVUPS, asm.At(to, kernel.PlanePairs+cacheLine*i), w)
	}
}

// subBlock returns the steps that write both planes of a sub-block, one for every four k, and
// advance the pointer to them.
func (e *planeUnpacker) subBlock(to asm.Reg) (steps []func()) {
	const groups = qtype.SubBlockK / 4
	for g := range groups {
		steps = append(steps, func() {
			if g == 0 && e.made != nil {
				e.make(0, 0, e.x[0], e.t[0])
			}
			if 4*g%e.Span() == 0 {
				e.loadScale(4 * g)
			}
			e.weights(0, 0, g)
			e.multiply()
			e.split()
			e.I(asm.VMOVUPS, asm.At(to, cacheLine*g), e.high)
			e.I(asm.VMOVUPS, asm.At(to, kernel.PlaneBytes+cacheLine*g), e.lo)
			if g == groups-1 {
				e.Add(to, asm.Imm32(cacheLine*groups))
			}
		})
	}
	return steps
}

// loadScale loads the integer scales of the span at k0.
func (e *planeUnpacker) loadScale(k0 int) {
	v := e.scale16
	switch e.Subs {
	case qtype.NoSubs:
		return
	case qtype.PairSubs:
		e.I(asm.VPMOVZXBD, v, e.sub(0, 0))
	case qtype.NibbleSubs:
		e.I(asm.VPMOVZXBD, v, e.sub(0, k0/16))
		e.and(v, v, 15)
	default:
		e.loadSub(v, e.x[0], 0, k0)
	}
	e.I(asm.VPSHUFB, v, v, e.twice)
}

// multiply computes the scaled weights from the bytes in w.
func (e *planeUnpacker) multiply() {
	w := e.w[0]
	switch {
	case e.ZeroPoint > 0:
		e.I(asm.VPSUBB, w, w, e.zeros)
		fallthrough
	case e.Codebook != nil:
		e.I(asm.VPSLLW, e.even, w, asm.Imm(8))
		e.I(asm.VPSRAW, e.even, e.even, asm.Imm(8))
		e.I(asm.VPSRAW, e.odd, w, asm.Imm(8))
	default:
		e.I(asm.VPANDD, e.even, w, e.low)
		e.I(asm.VPSRLW, e.odd, w, asm.Imm(8))
	}
	if e.Subs != qtype.NoSubs {
		e.I(asm.VPMULLW, e.even, e.even, e.scale16)
		e.I(asm.VPMULLW, e.odd, e.odd, e.scale16)
	}
}

// split divides the scaled weights into bytes: the low seven bits, and the eight above them.
func (e *planeUnpacker) split() {
	const choose = 0xCA // low ? second : third, of the three operands low, second, third
	t := e.w[0]
	e.I(asm.VPSRLW, t, e.even, asm.Imm(kernel.PlaneShift))
	e.I(asm.VPSLLW, e.lo, e.odd, asm.Imm(8-kernel.PlaneShift))
	e.I(asm.VMOVAPS, e.high, e.low)
	e.I(asm.VPTERNLOGD, e.high, t, e.lo, asm.Imm(choose))
	e.I(asm.VPSLLW, t, e.odd, asm.Imm(8))
	e.I(asm.VMOVAPS, e.lo, e.low)
	e.I(asm.VPTERNLOGD, e.lo, e.even, t, asm.Imm(choose))
	e.I(asm.VPANDD, e.lo, e.lo, e.bits)
}
