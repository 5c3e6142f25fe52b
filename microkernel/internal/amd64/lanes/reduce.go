package lanes

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// SumLanes adds the sixteen lanes of the accumulator (register acc, with AVX2 also acc+1) by the
// tree of package arith and leaves the sum in lane 0 of acc. It overwrites tmp.
func (g *Gen) SumLanes(acc, tmp int) {
	g.fold(acc, tmp, func(dst, lo, hi asm.Vec) { g.I(asm.VADDPS, dst, lo, hi) })
}

// MaxLanes is SumLanes for the maximum. The upper lane is the first source, so that NaN is ignored.
func (g *Gen) MaxLanes(acc, tmp int) {
	g.fold(acc, tmp, func(dst, lo, hi asm.Vec) { g.I(asm.VMAXPS, dst, hi, lo) })
}

func (g *Gen) fold(acc, tmp int, op func(dst, lo, hi asm.Vec)) {
	a, t := asm.Y(acc), asm.Y(tmp)
	if g.Wide {
		g.I(asm.VEXTRACTF64X4, t, asm.Z(acc), asm.Imm(1))
		op(a, a, t)
	} else {
		op(a, a, asm.Y(acc+1))
	}
	ax, tx := asm.X(acc), asm.X(tmp)
	g.I(asm.VEXTRACTF128, tx, a, asm.Imm(1))
	op(ax, ax, tx)
	g.I(asm.VMOVHLPS, tx, ax, ax)
	op(ax, ax, tx)
	g.I(asm.VMOVSHDUP, tx, ax)
	op(ax, ax, tx)
}

// CmpNegInf compares a float32 in memory with -Inf, by its bits; asm.Zero is the condition of
// equality. It overwrites tmp.
func (g *Gen) CmpNegInf(m asm.Mem, tmp asm.Reg) {
	g.MovSXD(tmp, m)
	g.Cmp(tmp, asm.Imm32(arith.NegInfBits-1<<32))
}

// FoldInt reduces the integer lanes of register a by op; the result is in lane 0. It overwrites t.
func (g *Gen) FoldInt(op *asm.Op, a, t int) {
	if g.Wide {
		g.I(asm.VEXTRACTF64X4, asm.Y(t), asm.Z(a), asm.Imm(1))
		g.I(op, asm.Y(a), asm.Y(a), asm.Y(t))
	}
	g.I(asm.VEXTRACTF128, asm.X(t), asm.Y(a), asm.Imm(1))
	g.I(op, asm.X(a), asm.X(a), asm.X(t))
	g.I(asm.VPSHUFD, asm.X(t), asm.X(a), asm.Imm(0x0E))
	g.I(op, asm.X(a), asm.X(a), asm.X(t))
	g.I(asm.VPSHUFD, asm.X(t), asm.X(a), asm.Imm(0x01))
	g.I(op, asm.X(a), asm.X(a), asm.X(t))
}
