package gemm

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newInt8 allocates the tile of the chain "block". For each span of k that shares scales: the
// exact integer dot product of every accumulator, its conversion to float32, one FMA by the
// product of the two scales, and one FMA by the offset of weights that have it. In the chain
// "group" the FMA uses the scale of the weights only, and endGroup applies that of the
// activations.
func newInt8(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	e := newInt8Tile(a, s)
	return e.emitter, func() { e.function(e.setup, e.body) }
}

func newInt8Tile(a *asm.Asm, s spec) *int8Tile {
	e := &int8Tile{subBlocks: newSubBlocks(newEmitter(a, s)), form: s.int8Form()}
	e.dot = e.vecs(s.MR * e.v)
	e.w = e.vecs(e.v * e.form.together)
	e.x = e.vecs(e.form.together)
	e.t = e.vecs(e.form.temps)
	if e.form.abs {
		e.abs = e.vecs(e.v)
	}
	e.masks = e.vecs(e.form.masks)
	if e.Codebook != nil {
		e.table = e.vec()
	}
	if e.Made() {
		e.made = e.vecs(e.v)
	}
	if e.form.flip {
		e.none, e.top = e.vec(), e.vec()
	}
	if e.used+len(e.BlockScales)*e.v <= s.ISA.Registers() && e.SubBlocks() > 1 && !s.integerScales() {
		for range len(e.BlockScales) {
			e.heads = append(e.heads, e.vecs(e.v))
		}
		e.atHead = e.loadHeads
	}
	switch {
	case s.superblock():
		e.cRow = e.pointer()
		e.begin, e.atTail = e.startGroups, e.endGroup
	case s.integerScales():
		e.cRow = e.pointer()
		e.begin, e.atTail = e.startGroups, e.endSuperblock
		if e.Affine() && !e.wide() {
			mask := e.vec()
			e.cMask = &mask
		}
	}
	return e
}

type int8Tile struct {
	subBlocks
	form  int8Form
	dot   []asm.Vec   // integer accumulators of the span, laid out like acc
	w     []asm.Vec   // weights of four k, for each of the groups that are multiplied together; then their scales
	abs   []asm.Vec   // AVX2: magnitudes of the weights (signedDot)
	masks []asm.Vec   // AVX-512: of the bit fields of a byte
	x     []asm.Vec   // four activations in all lanes, for each of these groups; then a product of scales
	t     []asm.Vec   // temporaries
	table asm.Vec     // levels
	none  asm.Vec     // zero, and
	top   asm.Vec     // the topmost bit of each byte: AVX-512 changes signs by them
	cRow  asm.Reg     // walks over C; chain "group" only
	heads [][]asm.Vec // scales at the head of a block of several sub-blocks, by scale; nil if registers are scarce
}

// int8Form describes how a spec computes its dot product, and the registers it needs in addition to
// accumulators.
type int8Form struct {
	words    int  // groups of four k whose products the multiply-add can sum in 16 bits; a whole span at the most
	together int  // groups of which the weights are in registers at the same time
	temps    int  // temporaries
	masks    int  // registers of masks
	abs      bool // magnitudes in addition to the weights
	flip     bool // sign changes under opmasks
}

func (s spec) int8Form() int8Form {
	b := s.B.Desc()
	f := int8Form{together: 1}
	if s.ISA == kernel.AVX512 && b.Bits() < 8 {
		f.masks = len(b.Fields)
	}
	if s.Dot != kernel.MAdd && s.integerScales() {
		f.temps = 1
		return f
	}
	if s.Dot != kernel.MAdd {
		if s.ISA != kernel.AVX512 || b.Subs != qtype.NoSubs || len(b.Fields) > 1 {
			f.temps = 1
		}
		return f
	}
	f.temps, f.words = 1, 1
	if s.signedDot() {
		f.abs, f.flip = s.ISA != kernel.AVX512, s.ISA == kernel.AVX512
		return f
	}
	// Pairs of products of an unsigned number and an activation of at most 127 are summed.
	f.words = min(b.Span()/4, 32767/(2*127*b.Largest()))
	if f.words > 1 && f.words < b.Span()/4 {
		f.words, f.together, f.temps = 2, 2, 2
	}
	return f
}

func (e *int8Tile) body() {
	e.blocks(e.mainLoop, func() {
		for k := 0; k < qtype.SubBlockK; k += e.Span() {
			e.part(k)
		}
		bytes, _ := e.s.actBlock()
		e.advance(e.aBase, bytes)
	})
}

func (e *int8Tile) setup() {
	for i, m := range e.masks {
		e.I(asm.VPBROADCASTD, m, e.ConstU32(e.byteMask(i)))
	}
	if e.Codebook != nil {
		e.I(asm.VMOVUPS, e.table, e.levelTable())
	}
	if e.form.flip {
		e.zero(e.none)
		e.I(asm.VPBROADCASTD, e.top, e.ConstU32(0x80808080))
	}
}

// part emits the span of k starting at k0: dot products, then their addition to the accumulators.
func (e *int8Tile) part(k0 int) {
	if k0 == 0 {
		for j := range e.made {
			e.make(j, j, e.x[0], e.t[0])
		}
	}
	e.start0(k0)
	bytes := e.linesOfSubBlock()
	for g := k0 / 4; g < (k0+e.Span())/4; g += e.form.together {
		for i := range e.form.together {
			e.prefetch(bytes*(g+i)/8, bytes*(g+i+1)/8)
			for j := range e.v {
				e.weights(i*e.v+j, j, g+i)
			}
		}
		for r := range e.s.MR {
			e.row(r, g, g == k0/4)
		}
	}
	e.finishDots(k0)
	if e.s.integerScales() {
		e.scaleIntegers(k0)
		return
	}
	for j := range e.v {
		e.scale(e.w[j], j, k0)
	}
	for r := range e.s.MR {
		scale := e.a(r, kernel.ActScale)
		if !e.wide() && !e.s.superblock() {
			e.I(asm.VBROADCASTSS, e.x[0], scale)
		}
		for j := range e.v {
			d, both := e.dot[r*e.v+j], e.x[0]
			e.I(asm.VCVTDQ2PS, d, d)
			switch {
			case e.s.superblock():
				both = e.w[j]
			case e.wide():
				e.I(asm.VMULPS, both, e.w[j], scale.Bcast())
			default:
				both = e.t[0]
				e.I(asm.VMULPS, both, e.w[j], e.x[0])
			}
			e.I(asm.VFMADD231PS, e.acc[r*e.v+j], d, both)
		}
	}
	if e.Affine() {
		e.offsets(k0)
	}
}

// loadHeads loads the scales at the head of a block into registers for all its sub-blocks.
func (e *int8Tile) loadHeads() {
	for n, regs := range e.heads {
		for j, v := range regs {
			e.loadBlockScale(v, j, n)
		}
	}
}

// head returns a register with scale n of the block of vector j: a kept one, or v.
func (e *int8Tile) head(v asm.Vec, j, n int) asm.Vec {
	if e.heads != nil {
		return e.heads[n][j]
	}
	e.loadBlockScale(v, j, n)
	return v
}

// scale loads the scale of vector j for the span at k0.
func (e *int8Tile) scale(v asm.Vec, j, k0 int) {
	if e.Subs == qtype.FloatSubs {
		e.loadFloat(v, j, k0)
		return
	}
	d := e.head(v, j, 0)
	switch e.Subs {
	case qtype.PairSubs:
		e.I(asm.VPMOVZXBD, e.t[0], e.sub(j, 0))
	case qtype.NibbleSubs:
		e.I(asm.VPMOVZXBD, e.t[0], e.sub(j, k0/16))
		e.and(e.t[0], e.t[0], 15)
	case qtype.NoSubs:
		e.move(v, d)
		return
	default:
		e.loadSub(e.t[0], e.x[0], j, k0)
	}
	e.I(asm.VCVTDQ2PS, e.t[0], e.t[0])
	e.I(asm.VMULPS, v, d, e.t[0])
}

// move copies a register unless both are the same.
func (e *int8Tile) move(to, from asm.Vec) {
	if to != from {
		e.I(asm.VMOVAPS, to, from)
	}
}

// offsets adds the contribution of the weights' offsets: the sum of the activations of the span,
// times their scale, times the offset.
func (e *int8Tile) offsets(k0 int) {
	for j, v := range e.w[:e.v] {
		e.offset(v, j, k0)
	}
	e.addOffsets(k0)
}

// offset loads the offset of vector j for the span at k0.
func (e *int8Tile) offset(v asm.Vec, j, k0 int) {
	d := e.head(v, j, 1)
	switch e.Subs {
	case qtype.PairSubs:
		e.I(asm.VPMOVZXBD, e.t[0], e.sub(j, 1))
	case qtype.NibbleSubs:
		e.I(asm.VPMOVZXBD, e.t[0], e.sub(j, k0/16))
		e.I(asm.VPSRLD, e.t[0], e.t[0], asm.Imm(4))
	default:
		e.move(v, d)
		return
	}
	e.I(asm.VCVTDQ2PS, e.t[0], e.t[0])
	e.I(asm.VMULPS, v, d, e.t[0])
}

// addOffsets adds the products of the offsets in w.
func (e *int8Tile) addOffsets(k0 int) {
	op := asm.VFMADD231PS
	if e.Subs != qtype.NoSubs {
		op = asm.VFNMADD231PS // the K types take their offset off
	}
	for r := range e.s.MR {
		var sum asm.Operand = e.x[0]
		switch {
		case e.Span() < qtype.SubBlockK:
			e.halfSum(e.x[0], r, k0, 1)
			e.I(asm.VCVTDQ2PS, e.x[0], e.x[0])
			switch scale := e.a(r, kernel.ActScale); {
			case e.s.superblock():
			case e.wide():
				e.I(asm.VMULPS, e.x[0], e.x[0], scale.Bcast())
			default:
				e.I(asm.VBROADCASTSS, e.t[0], scale)
				e.I(asm.VMULPS, e.x[0], e.x[0], e.t[0])
			}
		case e.wide():
			sum = e.a(r, kernel.ActSum).Bcast()
		default:
			e.I(asm.VBROADCASTSS, e.x[0], e.a(r, kernel.ActSum))
		}
		for j := range e.v {
			e.I(op, e.acc[r*e.v+j], e.w[j], sum)
		}
	}
}
