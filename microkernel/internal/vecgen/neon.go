package vecgen

import (
	"fmt"
	"math"

	a64 "sandwich/microkernel/internal/arm64/asm"
)

// The NEON kernels hold a group of sixteen float32 in four registers, a block, so that the sixteen
// virtual lanes of a reduction are the lanes of one block. A partial group goes through 64 bytes
// below the stack pointer, word by word.

// General registers. Cursor nC0 moves along the row that begins at base nB0, nC1 along that of nB1,
// and so on; the trampoline has the arguments in x0.
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
	LayerNorm:  neonLayerNorm,
	RoPEHalves: neonRoPEHalves,
	RoPEPairs:  neonRoPEPairs,
	SwiGLU:     neonSwiGLU,
	GeGLU:      neonGeGLU,
	ClampedGLU: neonClampedGLU,
	SigmoidGLU: neonSigmoidGLU,
	SoftCap:    neonSoftCap,
	Add:        neonAdd,
	Plus:       neonPlus,
	AddScaled:  neonAddScaled,
	Scale:      neonScale,
	Softmax:    neonSoftmax,
	Merge:      neonMerge,
	Finish:     neonFinish,
	QuantizeQ8: neonQuantizeQ8,
	RoundBF16:  func(g neonGen) { neonRoundBF16(g, leastFloat) },
	RoundQuery: func(g neonGen) { neonRoundBF16(g, math.Float32bits(leastQuery)) },
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
	ConvSiLU:   neonConvSiLU,
	ConvGate:   neonConvGate,
	Mul:        neonMul,
	L2Norm:     neonL2Norm,
	Delta:      neonDelta,
}

// neonLacks are kernels without code for arm64: keys go there token by token, no attention of it
// reads bfloat16, and no products of it share scales of activations over 256 values.
var neonLacks = map[Kernel]bool{QuantizeQ8Long: true, StorePanelK16: true,
	StoreK16BF16: true, StoreV16BF16: true, StorePanelK16BF16: true}

// GenerateNEON is Generate for arm64. The arguments of a kernel are the same. Some kernels have no
// code there.
func GenerateNEON(k Kernel) ([]byte, error) {
	if neonLacks[k] {
		return nil, nil
	}
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

// pointers loads P[0], P[1], ... into the registers.
func (g neonGen) pointers(to ...a64.X) {
	for i, x := range to {
		g.argP(x, i)
	}
}

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

// groups runs body over the groups of n elements: whole ones in a loop, then the partial one with
// tail set. n is kept.
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

// load reads a group; in the partial one the lanes beyond the end are zero and their memory is not
// touched.
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

// overRow puts the cursors at the start of their rows of float32, then runs body over the groups of
// nLen elements.
func (g neonGen) overRow(cursors []a64.X, body func(tail bool)) {
	for _, c := range cursors {
		g.MovX(c, c-nC0+nB0)
	}
	g.groups(nLen, floats(cursors...), body)
}

// nextRows moves the bases nB0, nB1, ... on: base i by the stride in argument N[strides[i]].
func (g neonGen) nextRows(strides ...int) {
	for i, n := range strides {
		g.nextRow(nB0+a64.X(i), n)
	}
}

// nextRow moves a base on by the stride in argument N[i], which counts float32.
func (g neonGen) nextRow(p a64.X, i int) {
	g.argN(nT0, i)
	g.I(a64.ADDL, p, p, nT0, a64.Imm(2))
}

// sumLanes adds the sixteen lanes by the tree of the oracle; every lane of the block's first
// register is then the sum.
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

// max replaces the lanes of old by those of x that are greater: NaN is passed over, and of two
// zeros the old one stays.
func (g neonGen) max(old, x, mask a64.V) {
	g.I(a64.FCMGT, mask, x, old)
	g.I(a64.BIT, old, x, mask)
}
