package vector

import (
	"unsafe"

	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// positions is the number of positions in a block of the KV cache.
const positions = arith.BlockPositions

// Offsets of the arguments.
const (
	offP = int(unsafe.Offsetof(kernel.VectorArgs{}.P))
	offN = int(unsafe.Offsetof(kernel.VectorArgs{}.N))
	offF = int(unsafe.Offsetof(kernel.VectorArgs{}.F))
	offR = int(unsafe.Offsetof(kernel.VectorArgs{}.R))
)

// General registers. Cursor nC0 moves along the row that begins at base nB0, nC1 along that of nB1,
// and so on; the trampoline has the arguments in x0.
const (
	nArgs = asm.X(0)
	nC0   = asm.X(1)
	nC1   = asm.X(2)
	nC2   = asm.X(3)
	nB0   = asm.X(4)
	nB1   = asm.X(5)
	nB2   = asm.X(6)
	nB3   = asm.X(7)
	nB4   = asm.X(8)
	nB5   = asm.X(9)
	nLen  = asm.X(10)
	nRows = asm.X(11)
	nTurn = asm.X(12) // whole groups still to do
	nLeft = asm.X(13) // elements of the partial group
	nT0   = asm.X(14) // nT0 to nT3 are clobbered by partial groups
	nT1   = asm.X(15)
	nT2   = asm.X(16)
	nT3   = asm.X(17)
	nX0   = asm.X(19)
	nX1   = asm.X(20)
	nX2   = asm.X(21)
	nX3   = asm.X(22)
)

// block is four consecutive vector registers, 0 to 7.
type block int

func (b block) v(i int) asm.V { return asm.V(4*int(b) + i) }

const blockRegs = 4

// nConst and nConst2 hold constants for the next instruction.
const (
	nConst  = asm.V(30)
	nConst2 = asm.V(31)
)

type gen struct{ *asm.Asm }

// Loads of arguments.
func (g gen) argP(x asm.X, i int) { g.I(asm.LDRX, x, nArgs, asm.Imm(offP+8*i)) }
func (g gen) argN(x asm.X, i int) { g.I(asm.LDRX, x, nArgs, asm.Imm(offN+8*i)) }

// pointers loads P[0], P[1], ... into the registers.
func (g gen) pointers(to ...asm.X) {
	for i, x := range to {
		g.argP(x, i)
	}
}

// argF loads a float argument into every lane.
func (g gen) argF(v asm.V, i int) {
	g.AddImm(nT0, nArgs, offF+4*i)
	g.I(asm.LD1R, v, nT0)
}

// each runs f for the four registers of a block.
func each(f func(i int)) {
	for i := range blockRegs {
		f(i)
	}
}

// op2 applies an instruction of two operands to whole blocks.
func (g gen) op2(o *asm.Op, d, n block) { each(func(i int) { g.I(o, d.v(i), n.v(i)) }) }

func (g gen) op3(o *asm.Op, d, n, m block) {
	each(func(i int) { g.I(o, d.v(i), n.v(i), m.v(i)) })
}

func (g gen) opAll(o *asm.Op, d, n block, m asm.V) {
	each(func(i int) { g.I(o, d.v(i), n.v(i), m) })
}

func (g gen) zero(b block) { each(func(i int) { g.Zero(b.v(i)) }) }

// cursor is a pointer that advances by step bytes with each group.
type cursor struct {
	x    asm.X
	step int
}

// floats returns cursors over float32.
func floats(x ...asm.X) []cursor {
	var out []cursor
	for _, r := range x {
		out = append(out, cursor{r, 4 * arith.Lanes})
	}
	return out
}

// groups runs body over the groups of n elements: whole ones in a loop, then the partial one with
// tail set. n is kept.
func (g gen) groups(n asm.X, cursors []cursor, body func(tail bool)) {
	rest, done := g.NewLabel(), g.NewLabel()
	g.I(asm.LSRI, nTurn, n, asm.Imm(4))
	g.CBZ(nTurn, rest)
	g.Loop(nTurn, func() {
		body(false)
		for _, c := range cursors {
			g.AddImm(c.x, c.x, c.step)
		}
	})
	g.Bind(rest)
	g.I(asm.LSLI, nLeft, n, asm.Imm(60))
	g.I(asm.LSRI, nLeft, nLeft, asm.Imm(60))
	g.CBZ(nLeft, done)
	body(true)
	g.Bind(done)
}

// overRows runs body for each of `rows` rows, or not at all for zero.
func (g gen) overRows(rows asm.X, body func()) {
	done := g.NewLabel()
	g.CBZ(rows, done)
	g.Loop(rows, body)
	g.Bind(done)
}

// load reads a group. In the partial group the lanes beyond the end are zero and their memory is
// not accessed.
func (g gen) load(b block, p asm.X, tail bool) { g.loadOr(b, p, tail, 0) }

// loadOr is load with another word in the lanes beyond the end.
func (g gen) loadOr(b block, p asm.X, tail bool, word uint32) {
	if tail {
		g.Splat(b.v(0), word)
		g.toScratch(b.v(0), b.v(0), b.v(0), b.v(0))
		g.MovX(nT0, p)
		g.AddImm(nT1, asm.SP, 0)
		g.copyLeft()
		p = asm.SP
	}
	g.I(asm.LDPQ, b.v(0), b.v(1), p, asm.Imm(0))
	g.I(asm.LDPQ, b.v(2), b.v(3), p, asm.Imm(32))
}

// store writes a group, in the partial group only the lanes before the end.
func (g gen) store(b block, p asm.X, tail bool) {
	if !tail {
		g.I(asm.STPQ, b.v(0), b.v(1), p, asm.Imm(0))
		g.I(asm.STPQ, b.v(2), b.v(3), p, asm.Imm(32))
		return
	}
	g.toScratch(b.v(0), b.v(1), b.v(2), b.v(3))
	g.AddImm(nT0, asm.SP, 0)
	g.MovX(nT1, p)
	g.copyLeft()
}

func (g gen) toScratch(a, b, c, d asm.V) {
	g.I(asm.STPQ, a, b, asm.SP, asm.Imm(0))
	g.I(asm.STPQ, c, d, asm.SP, asm.Imm(32))
}

// copyLeft copies the words of the partial group from nT0 to nT1.
func (g gen) copyLeft() {
	g.MovX(nT2, nLeft)
	g.Loop(nT2, func() {
		g.I(asm.LDRWP, nT3, nT0, asm.Imm(4))
		g.I(asm.STRWP, nT3, nT1, asm.Imm(4))
	})
}

// overRow sets the cursors to the start of their rows of float32 and runs body over the groups of
// nLen elements.
func (g gen) overRow(cursors []asm.X, body func(tail bool)) {
	for _, c := range cursors {
		g.MovX(c, c-nC0+nB0)
	}
	g.groups(nLen, floats(cursors...), body)
}

// nextRows advances the bases nB0, nB1, ...: base i by the stride in argument N[strides[i]].
func (g gen) nextRows(strides ...int) {
	for i, n := range strides {
		g.nextRow(nB0+asm.X(i), n)
	}
}

// nextRow advances a base by the stride in argument N[i], which counts float32.
func (g gen) nextRow(p asm.X, i int) {
	g.argN(nT0, i)
	g.I(asm.ADDL, p, p, nT0, asm.Imm(2))
}

// sumLanes adds the sixteen lanes by the tree of package arith; every lane of the block's first
// register then holds the sum.
func (g gen) sumLanes(b block) {
	g.fold(b, func(low, high asm.V) { g.I(asm.FADD, low, low, high) })
}

// maxLanes is sumLanes for the maximum.
func (g gen) maxLanes(b block) { g.fold(b, func(low, high asm.V) { g.max(low, high, nConst2) }) }

func (g gen) fold(b block, op func(low, high asm.V)) {
	op(b.v(0), b.v(2))
	op(b.v(1), b.v(3))
	op(b.v(0), b.v(1))
	g.I(asm.EXT, nConst, b.v(0), b.v(0), asm.Imm(8))
	op(b.v(0), nConst)
	g.I(asm.EXT, nConst, b.v(0), b.v(0), asm.Imm(4))
	op(b.v(0), nConst)
	g.I(asm.DUPS, b.v(0), b.v(0), asm.Imm(0))
}

// max replaces the lanes of old by greater lanes of x: NaN is ignored, and of two zeros the old
// one stays.
func (g gen) max(old, x, mask asm.V) {
	g.I(asm.FCMGT, mask, x, old)
	g.I(asm.BIT, old, x, mask)
}
