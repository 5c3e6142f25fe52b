package vecgen

import (
	"fmt"

	"sandwich/microkernel/internal/a64"
)

// The NEON kernels hold a group of sixteen float32 in four registers, a block, so that the sixteen virtual lanes of a reduction are
// the lanes of one block. A partial group goes through 64 bytes below the stack pointer, word by word.

// General registers. The cursors move along rows, the bases stay at their start; the trampoline has the arguments in x0.
const (
	nArgs = a64.X(0)
	nC0   = a64.X(1)
	nC1   = a64.X(2)
	nC2   = a64.X(3)
	nB0   = a64.X(4)
	nB1   = a64.X(5)
	nB2   = a64.X(6)
	nB3   = a64.X(7)
	nB4   = a64.X(8)
	nB5   = a64.X(9)
	nLen  = a64.X(10)
	nRows = a64.X(11)
	nTurn = a64.X(12) // whole groups still to do
	nLeft = a64.X(13) // elements of the partial group
	nT0   = a64.X(14) // nT0 to nT3 are clobbered by partial groups
	nT1   = a64.X(15)
	nT2   = a64.X(16)
	nT3   = a64.X(17)
	nX0   = a64.X(19)
	nX1   = a64.X(20)
	nX2   = a64.X(21)
	nX3   = a64.X(22)
)

// block is four consecutive vector registers, 0 to 7.
type block int

func (b block) v(i int) a64.V { return a64.V(4*int(b) + i) }

const blockRegs = 4

// nConst and nConst2 hold constants on their way into an instruction.
const (
	nConst  = a64.V(30)
	nConst2 = a64.V(31)
)

type neonGen struct{ *a64.Asm }

var neonEmitters = [Count]func(neonGen){
	RMSNorm:    neonRMSNorm,
	RoPEHalves: neonRoPEHalves,
	RoPEPairs:  neonRoPEPairs,
	SwiGLU:     neonSwiGLU,
	Add:        neonAdd,
	Plus:       neonPlus,
	AddScaled:  neonAddScaled,
	Scale:      neonScale,
	Softmax:    neonSoftmax,
	Merge:      neonMerge,
	Finish:     neonFinish,
	QuantizeQ8: neonQuantizeQ8,
	ToF16:      neonToF16,
	ToF32:      neonToF32,
	Max:        neonMax,
	FindEqual:  neonFindEqual,
	ExpSum:     neonExpSum,
	Select:     neonSelect,
	StoreK16:   neonStoreK16,
	StoreV16:   neonStoreV16,
	WidenK8:    neonWidenK8,
	WidenV8:    neonWidenV8,
}

// GenerateNEON is Generate for arm64. The arguments of a kernel are the same.
func GenerateNEON(k Kernel) ([]byte, error) {
	if neonEmitters[k] == nil {
		return nil, fmt.Errorf("vector kernel %d has no NEON code", k)
	}
	g := neonGen{a64.New(a64.Base)}
	g.AddImm(a64.SP, a64.SP, -4*group)
	neonEmitters[k](g)
	g.AddImm(a64.SP, a64.SP, 4*group)
	g.Ret()
	code, err := g.Finish()
	if err != nil {
		return nil, fmt.Errorf("vector kernel %d: %w", k, err)
	}
	return code, nil
}

// Loads of arguments.
func (g neonGen) argP(x a64.X, i int) { g.I(a64.LDRX, x, nArgs, a64.Imm(offP+8*i)) }
func (g neonGen) argN(x a64.X, i int) { g.I(a64.LDRX, x, nArgs, a64.Imm(offN+8*i)) }

// argF puts a float argument into every lane.
func (g neonGen) argF(v a64.V, i int) {
	g.AddImm(nT0, nArgs, offF+4*i)
	g.I(a64.LD1R, v, nT0)
}

// each runs f for the four registers of a block.
func each(f func(i int)) {
	for i := range blockRegs {
		f(i)
	}
}

// op2 and op3 apply an instruction to whole blocks, opAll with the same last operand for all.
func (g neonGen) op2(o *a64.Op, d, n block) { each(func(i int) { g.I(o, d.v(i), n.v(i)) }) }
func (g neonGen) op3(o *a64.Op, d, n, m block) {
	each(func(i int) { g.I(o, d.v(i), n.v(i), m.v(i)) })
}
func (g neonGen) opAll(o *a64.Op, d, n block, m a64.V) {
	each(func(i int) { g.I(o, d.v(i), n.v(i), m) })
}
func (g neonGen) zero(b block) { each(func(i int) { g.Zero(b.v(i)) }) }

// cursor is a pointer that goes on by step bytes with each group.
type cursor struct {
	x    a64.X
	step int
}

// floats are cursors over float32.
func floats(x ...a64.X) []cursor {
	var out []cursor
	for _, r := range x {
		out = append(out, cursor{r, 4 * group})
	}
	return out
}

// groups runs body over the groups of n elements: whole ones in a loop, then the partial one with tail set. n is kept.
func (g neonGen) groups(n a64.X, cursors []cursor, body func(tail bool)) {
	rest, done := g.NewLabel(), g.NewLabel()
	g.I(a64.LSRI, nTurn, n, a64.Imm(4))
	g.CBZ(nTurn, rest)
	g.Loop(nTurn, func() {
		body(false)
		for _, c := range cursors {
			g.AddImm(c.x, c.x, c.step)
		}
	})
	g.Bind(rest)
	g.I(a64.LSLI, nLeft, n, a64.Imm(60))
	g.I(a64.LSRI, nLeft, nLeft, a64.Imm(60))
	g.CBZ(nLeft, done)
	body(true)
	g.Bind(done)
}

// overRows runs body for each of `rows` rows; nothing happens when there are none.
func (g neonGen) overRows(rows a64.X, body func()) {
	done := g.NewLabel()
	g.CBZ(rows, done)
	g.Loop(rows, body)
	g.Bind(done)
}

// load reads a group; in the partial one the lanes beyond the end are zero and their memory is not touched.
func (g neonGen) load(b block, p a64.X, tail bool) { g.loadOr(b, p, tail, 0) }

// loadOr is load with another word in the lanes beyond the end.
func (g neonGen) loadOr(b block, p a64.X, tail bool, word uint32) {
	if tail {
		g.Splat(b.v(0), word)
		g.toScratch(b.v(0), b.v(0), b.v(0), b.v(0))
		g.MovX(nT0, p)
		g.AddImm(nT1, a64.SP, 0)
		g.copyLeft()
		p = a64.SP
	}
	g.I(a64.LDPQ, b.v(0), b.v(1), p, a64.Imm(0))
	g.I(a64.LDPQ, b.v(2), b.v(3), p, a64.Imm(32))
}

// store writes a group, of the partial one only the lanes before the end.
func (g neonGen) store(b block, p a64.X, tail bool) {
	if !tail {
		g.I(a64.STPQ, b.v(0), b.v(1), p, a64.Imm(0))
		g.I(a64.STPQ, b.v(2), b.v(3), p, a64.Imm(32))
		return
	}
	g.toScratch(b.v(0), b.v(1), b.v(2), b.v(3))
	g.AddImm(nT0, a64.SP, 0)
	g.MovX(nT1, p)
	g.copyLeft()
}

func (g neonGen) toScratch(a, b, c, d a64.V) {
	g.I(a64.STPQ, a, b, a64.SP, a64.Imm(0))
	g.I(a64.STPQ, c, d, a64.SP, a64.Imm(32))
}

// copyLeft copies the words of the partial group from nT0 to nT1.
func (g neonGen) copyLeft() {
	g.MovX(nT2, nLeft)
	g.Loop(nT2, func() {
		g.I(a64.LDRWP, nT3, nT0, a64.Imm(4))
		g.I(a64.STRWP, nT3, nT1, a64.Imm(4))
	})
}

// nextRow moves a base on by the stride in argument N[i], which counts float32.
func (g neonGen) nextRow(p a64.X, i int) {
	g.argN(nT0, i)
	g.I(a64.ADDL, p, p, nT0, a64.Imm(2))
}

// sumLanes adds the sixteen lanes by the tree of the oracle; every lane of the block's first register is then the sum.
func (g neonGen) sumLanes(b block) {
	g.fold(b, func(low, high a64.V) { g.I(a64.FADD, low, low, high) })
}

// maxLanes is sumLanes for the maximum.
func (g neonGen) maxLanes(b block) { g.fold(b, func(low, high a64.V) { g.max(low, high, nConst2) }) }

func (g neonGen) fold(b block, op func(low, high a64.V)) {
	op(b.v(0), b.v(2))
	op(b.v(1), b.v(3))
	op(b.v(0), b.v(1))
	g.I(a64.EXT, nConst, b.v(0), b.v(0), a64.Imm(8))
	op(b.v(0), nConst)
	g.I(a64.EXT, nConst, b.v(0), b.v(0), a64.Imm(4))
	op(b.v(0), nConst)
	g.I(a64.DUPS, b.v(0), b.v(0), a64.Imm(0))
}

// max replaces the lanes of old by those of x that are greater: NaN is passed over, and of two zeros the old one stays.
func (g neonGen) max(old, x, mask a64.V) {
	g.I(a64.FCMGT, mask, x, old)
	g.I(a64.BIT, old, x, mask)
}

// neonExp is the registers of one exponential: p becomes exp(x), the others are clobbered.
type neonExp struct{ p, x, n, z a64.V }

// expOf is the exponentials of a block, in blocks of registers.
func expOf(p, x, n, z block) []neonExp {
	var out []neonExp
	each(func(i int) { out = append(out, neonExp{p.v(i), x.v(i), n.v(i), z.v(i)}) })
	return out
}

// exp computes several exponentials side by side. Where the argument is never positive its upper clamp is left out.
func (g neonGen) exp(positive bool, of []neonExp) {
	all := func(step func(e neonExp)) {
		for _, e := range of {
			step(e)
		}
	}
	with := func(c float32, step func(e neonExp)) {
		g.SplatF(nConst, c)
		all(step)
	}
	if positive {
		with(expHi, func(e neonExp) { g.I(a64.FMIN, e.x, e.x, nConst) })
	}
	with(expLo, func(e neonExp) { g.I(a64.FMAX, e.x, e.x, nConst) })
	g.SplatF(nConst2, expMagic)
	all(func(e neonExp) { g.Move(e.z, nConst2) })
	with(log2E, func(e neonExp) { g.I(a64.FMLA, e.z, e.x, nConst) })
	all(func(e neonExp) { g.I(a64.FSUB, e.n, e.z, nConst2) })
	with(ln2Hi, func(e neonExp) { g.I(a64.FMLS, e.x, e.n, nConst) })
	with(ln2Lo, func(e neonExp) { g.I(a64.FMLS, e.x, e.n, nConst) })
	with(expC6, func(e neonExp) { g.Move(e.p, nConst) })
	// The sum of a multiply-add is its destination: p and n take turns, and after an even number of steps it is p's.
	for i, c := range []float32{expC5, expC4, expC3, expC2, 1, 1} {
		with(c, func(e neonExp) {
			from, to := e.p, e.n
			if i%2 == 1 {
				from, to = to, from
			}
			g.Move(to, nConst)
			g.I(a64.FMLA, to, from, e.x)
		})
	}
	// The integer k = n sits in the low bits of z above an even constant: 2^(k>>1) and 2^(k-(k>>1)) are built from it
	// by shifts that push the constant out, and of the two products only the second can round.
	g.Splat(nConst, bias)
	all(func(e neonExp) {
		g.I(a64.SSHR4S, e.n, e.z, a64.Imm(1))
		g.I(a64.SUBV4S, e.z, e.z, e.n)
		g.I(a64.SHL4S, e.n, e.n, a64.Imm(23))
		g.I(a64.SHL4S, e.z, e.z, a64.Imm(23))
		g.I(a64.ADDV4S, e.n, e.n, nConst)
		g.I(a64.ADDV4S, e.z, e.z, nConst)
		g.I(a64.FMUL, e.p, e.p, e.n)
		g.I(a64.FMUL, e.p, e.p, e.z)
	})
}
