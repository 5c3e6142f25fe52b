package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// bf16Lanes is the number of k in a vector of a row of A.
const bf16Lanes = 8

// newBF16 allocates the tile of the chain "pair". BFDOT multiplies, for each pair of k and each
// row, four columns of a packed panel by a lane of the row. BFMMLA multiplies two rows by two
// columns and two pairs of k, for which the word pairs of a column are interleaved; it adds the
// pairs in order, so that the bits are the same. A last row without a partner uses BFDOT.
func newBF16(a *asm.Asm, s spec) (_ *tile, emit func()) {
	e := &pairTile{tile: newTile(a, s)}
	e.a = e.vecs(s.MR)
	e.w = e.vecs(pairWork)
	if s.Dot == kernel.BFMMLA {
		e.matched = e.vec()
	}
	return e.tile, func() { e.function(func() {}, e.body) }
}

type pairTile struct {
	*tile
	a       []asm.V // eight k of a row
	w       []asm.V // W: a pair of k and the next one, then both of two columns each
	matched asm.V   // two pairs of k of two rows
}

const pairWork = 4

func (e *pairTile) body() {
	var t kernel.TileArgs
	e.swapLayout()
	e.loop(unsafe.Offsetof(t.Main), func() { e.iteration(e.s.KU) })
	e.swapLayout()
	e.loop(unsafe.Offsetof(t.Rest), e.single)
}

// iteration emits n consecutive k and advances the pointers.
func (e *pairTile) iteration(n int) {
	for k := 0; k < n; k += bf16Lanes {
		for r, a := range e.a {
			e.I(asm.LDRQ, a, e.aBase[r], asm.Imm(2*k))
		}
		for p := 0; p < bf16Lanes/2; p += 2 {
			line := 64 * (k/2 + p)
			e.prefetch(line, line+65)
			for j := range e.v {
				e.twoPairs(j, p, line)
			}
		}
	}
	e.advance(e.aBase, 2*n)
	e.advance(e.bBase, 32*n)
}

// twoPairs adds the pairs p and p+1 of the loaded activations, whose weights are at `line` of the
// panel, to vector j.
func (e *pairTile) twoPairs(j, p, line int) {
	near, far, left, right := e.w[0], e.w[1], e.w[2], e.w[3]
	if e.s.Dot == kernel.BFDot && j%2 == 1 { // so that loads overlap
		near, far = left, right
	}
	at := line + 16*(j%perPanel)
	e.I(asm.LDRQ, near, e.panelOf(j), asm.Imm(at))
	e.I(asm.LDRQ, far, e.panelOf(j), asm.Imm(at+64))
	first := 0 // of the rows that BFDOT takes
	if e.s.Dot == kernel.BFMMLA {
		first = e.s.MR &^ 1
		e.matrices(j, p, left, right)
	}
	for r := first; r < e.s.MR; r++ {
		e.I(asm.BFDOTL, e.acc[r*e.v+j], near, e.a[r], asm.Imm(p))
		e.I(asm.BFDOTL, e.acc[r*e.v+j], far, e.a[r], asm.Imm(p+1))
	}
}

// matrices adds two pairs of k, two rows by two columns per instruction.
func (e *pairTile) matrices(j, p int, left, right asm.V) {
	if e.s.MR == 1 {
		return
	}
	e.I(asm.ZIP1S, left, e.w[0], e.w[1])
	e.I(asm.ZIP2S, right, e.w[0], e.w[1])
	zip := asm.ZIP1D
	if p > 0 {
		zip = asm.ZIP2D
	}
	for r := 0; r+1 < e.s.MR; r += 2 {
		e.I(zip, e.matched, e.a[r], e.a[r+1])
		e.I(asm.BFMMLA, e.acc[r*e.v+j], e.matched, left)
		e.I(asm.BFMMLA, e.acc[(r+1)*e.v+j], e.matched, right)
	}
}

// swapLayout converts sums of two rows with four columns to those of both rows with the left and
// with the right two columns, or back.
func (e *pairTile) swapLayout() {
	if e.s.Dot != kernel.BFMMLA {
		return
	}
	for r := 0; r+1 < e.s.MR; r += 2 {
		for j := range e.v {
			left, right, t := e.acc[r*e.v+j], e.acc[(r+1)*e.v+j], e.w[0]
			e.Move(t, left)
			e.I(asm.ZIP1D, left, left, right)
			e.I(asm.ZIP2D, right, t, right)
		}
	}
}

// single emits one pair of k.
func (e *pairTile) single() {
	for r, a := range e.a {
		e.I(asm.LDRS, a, e.aBase[r], asm.Imm(0))
	}
	for j := range e.v {
		w := e.w[j%len(e.w)]
		e.I(asm.LDRQ, w, e.panelOf(j), asm.Imm(16*(j%perPanel)))
		for r, a := range e.a {
			e.I(asm.BFDOTL, e.acc[r*e.v+j], w, a, asm.Imm(0))
		}
	}
	e.advance(e.aBase, 4)
	e.advance(e.bBase, 64)
}
