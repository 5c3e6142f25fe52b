package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newInt8 allocates the tile of the chain "block", four columns at a time. For each span of k that
// shares scales: the exact integer dot products of all rows, their conversion to float32, one FMA
// by the product of the two scales, and one FMA by the offset of weights that have it. Numbers are
// signed, so that no correction is needed.
func newInt8(a *asm.Asm, s spec) (_ *tile, emit func()) {
	e := &int8Tile{subBlocks: newSubBlocks(newTile(a, s))}
	e.dot = e.vecs(s.MR)
	e.a = e.vecs(s.activationRegisters())
	e.w = e.vecs(int8Work)
	if e.ZeroPoint > 0 {
		e.zero = e.vec()
	}
	if s.integerScales() {
		e.sums = e.vecs(s.MR * e.v)
		e.atTail = e.endSuperblock
	}
	return e.tile, func() { e.function(e.setup, e.body) }
}

type int8Tile struct {
	subBlocks
	dot  []asm.V // integer accumulators of the span, per row
	a    []asm.V // activations: sixteen k of a row, or eight k of two rows
	w    []asm.V // weights and what they go through, then scales and what they are multiplied with
	zero asm.V   // the number that stands for 0, in every byte
	sums []asm.V // chain "integer": exact sums of the superblock, laid out like acc
}

const int8Work = 4

func (e *int8Tile) body() {
	var t kernel.TileArgs
	e.blocks(unsafe.Offsetof(t.Main), func() {
		for k := 0; k < qtype.SubBlockK; k += e.Span() {
			for j := range e.v {
				e.part(j, k)
			}
		}
		bytes, _ := e.s.actBlock()
		e.advance(e.aBase, bytes)
	})
}

func (e *int8Tile) setup() {
	e.constants()
	if e.ZeroPoint > 0 {
		e.I(asm.MOVI, e.zero, asm.Imm(e.ZeroPoint))
	}
	// Sums start from zero here and after each superblock.
	for _, sum := range e.sums {
		e.Zero(sum)
	}
}

// part emits the span of k starting at k0 of vector j.
func (e *int8Tile) part(j, k0 int) {
	if e.Made() {
		e.make(j, e.w[0], e.w[1])
	}
	for _, d := range e.dot {
		e.Zero(d)
	}
	bytes := e.SubBlockBytes()
	for g := k0 / 4; g < (k0+e.Span())/4; g++ {
		if j == 0 {
			e.prefetch(bytes*g/8, bytes*(g+1)/8)
		}
		switch {
		case e.s.Dot != kernel.MMLA:
			e.products(j, g)
		case g%2 == 0:
			e.matrices(j, g)
		}
	}
	if e.s.Dot == kernel.MMLA {
		e.separate()
	}
	if e.s.integerScales() {
		e.scaleIntegers(j, k0)
		return
	}
	e.accumulate(j, k0)
}

// signed loads group g of vector j into v as signed bytes.
func (e *int8Tile) signed(v asm.V, j, g int) {
	e.numbers(v, j, g)
	if e.ZeroPoint > 0 {
		e.I(asm.SUB16B, v, v, e.zero)
	}
}

// products adds the products of four k, row by row.
func (e *int8Tile) products(j, g int) {
	_, first := e.s.actBlock()
	if g%4 == 0 {
		for r, a := range e.a {
			e.I(asm.LDURQ, a, e.aBase[r], asm.Imm(first+4*g))
		}
	}
	w := e.w[g%2]
	if e.s.Dot == kernel.MulL {
		w = e.w[0]
	}
	e.signed(w, j, g)
	for r, a := range e.a {
		if e.s.Dot == kernel.SDot {
			e.I(asm.SDOTL, e.dot[r], w, a, asm.Imm(g%4))
			continue
		}
		// The sums of two products fit sixteen bits: 2 * 128 * 127.
		x, low, high := e.w[1], e.w[2], e.w[3]
		e.I(asm.DUPS, x, a, asm.Imm(g%4))
		e.I(asm.SMULL, low, w, x)
		e.I(asm.SMULL2, high, w, x)
		e.I(asm.ADDP8H, low, low, high)
		e.I(asm.SADALP, e.dot[r], low)
	}
}

// matrices adds the products of eight k, two rows by two columns per instruction. A last row
// without a partner uses dot products.
func (e *int8Tile) matrices(j, g int) {
	_, first := e.s.actBlock()
	near, far, left, right := e.w[0], e.w[1], e.w[2], e.w[3]
	e.signed(near, j, g)
	e.signed(far, j, g+1)
	last := e.s.MR - 1
	if last%2 == 0 {
		a := e.a[0]
		e.I(asm.LDRD, a, e.aBase[last], asm.Imm(first+4*g))
		e.I(asm.SDOTL, e.dot[last], near, a, asm.Imm(0))
		e.I(asm.SDOTL, e.dot[last], far, a, asm.Imm(1))
	}
	if e.s.MR == 1 {
		return
	}
	e.I(asm.ZIP1S, left, near, far)
	e.I(asm.ZIP2S, right, near, far)
	for r := 0; r+1 < e.s.MR; r += 2 {
		a, t := e.a[r/2], e.a[len(e.a)-1]
		e.I(asm.LDRD, a, e.aBase[r], asm.Imm(first+4*g))
		e.I(asm.LDRD, t, e.aBase[r+1], asm.Imm(first+4*g))
		e.I(asm.ZIP1D, a, a, t)
		e.I(asm.SMMLA, e.dot[r], a, left)
		e.I(asm.SMMLA, e.dot[r+1], a, right)
	}
}

// separate converts the products of two rows with the left and the right two columns to those of
// each row with all four.
func (e *int8Tile) separate() {
	for r := 0; r+1 < e.s.MR; r += 2 {
		left, right := e.dot[r], e.dot[r+1]
		e.Move(e.w[0], left)
		e.I(asm.ZIP1D, left, left, right)
		e.I(asm.ZIP2D, right, e.w[0], right)
	}
}

// accumulate adds the dot products of the span at k0 to the chains of vector j.
func (e *int8Tile) accumulate(j, k0 int) {
	scale, offset, t, x := e.w[0], e.w[1], e.w[2], e.w[3]
	e.scales(scale, offset, t, x, j, k0)
	for r, d := range e.dot {
		e.I(asm.SCVTF, d, d)
		e.I(asm.LDRS, t, e.aBase[r], asm.Imm(kernel.ActScale))
		e.I(asm.FMULL, x, scale, t, asm.Imm(0))
		e.I(asm.FMLA, e.acc[r*e.v+j], d, x)
	}
	if !e.Affine() {
		return
	}
	for r := range e.s.MR {
		lane := 0
		if e.Span() == qtype.SubBlockK {
			e.I(asm.LDRS, t, e.aBase[r], asm.Imm(kernel.ActSum))
		} else {
			lane = k0 / 16
			e.I(asm.LDRS, t, e.aBase[r], asm.Imm(kernel.ActHalfSums))
			e.I(asm.LDRS, x, e.aBase[r], asm.Imm(kernel.ActScale))
			e.I(asm.SSHLL4H, t, t, asm.Imm(0))
			e.I(asm.SCVTF, t, t)
			e.I(asm.FMULL, t, t, x, asm.Imm(0))
		}
		e.I(asm.FMLAL, e.acc[r*e.v+j], offset, t, asm.Imm(lane))
	}
}
