package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// Operations that store keys and values in half precision, also rounded to bfloat16 first for a
// cache that bfloat16 dot products read. Those of keys use AVX2 on every CPU: they take eight
// dimensions at a time.

// panelPitch is the distance in bytes between the lines of a panel.
const panelPitch = arith.Lanes * 2

// emitStoreK16 stores one token: P the address of (position, dimension 0) in a K block, x; N
// headDim. Dimension d is 32 bytes after dimension d-1.
func emitStoreK16(g gen, round bool) {
	const x = 0
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.OverEights(n0, func() {
		g.I(asm.VMOVUPS, asm.Y(x), asm.AtIndex(p1, index, 4, 0))
		g.toHalf(asm.X(x), x, round)
		for i := range 8 {
			g.I(asm.VPEXTRW, asm.At(p0, panelPitch*i), asm.X(x), asm.Imm(uint8(i)))
		}
		g.Add(p0, asm.Imm32(8*panelPitch))
	}, func() {
		g.I(asm.VMOVSS, asm.X(x), asm.AtIndex(p1, index, 4, 0))
		g.toHalf(asm.X(x), x, round)
		g.I(asm.VPEXTRW, asm.At(p0, 0), asm.X(x), asm.Imm(0))
		g.Add(p0, asm.Imm32(panelPitch))
	})
}

// toHalf stores register x in half precision to dst. If it rounds to bfloat16 first, it overwrites
// the three registers after x.
func (g gen) toHalf(dst asm.Operand, x int, round bool) {
	if round {
		g.RoundUpper(x, x+1, 0)
		g.I(asm.VANDPS, g.V(x), g.V(x+1), g.Splat(arith.BF16UpperHalf))
	}
	g.I(asm.VCVTPS2PH, dst, g.V(x), asm.Imm(0))
}

// emitStorePanelK16 stores sixteen tokens: P a panel of a K block, x; N headDim/8, stride.
// Dimension d is line d of the panel. Eight lines are stored at a time, the first eight tokens in
// the lower half of each register.
func emitStorePanelK16(g gen, round bool) {
	const x, eight = 8, 8
	low, high, stride := asm.R13, asm.R14, tmp
	g.pointers(p0, p1)
	g.Mov(rows, argN(0))
	g.Mov(stride, argN(1))
	g.Shl(stride, 2)
	g.OverRows(rows, func() {
		g.Mov(low, p1)
		g.Lea(high, asm.AtIndex(p1, stride, 8, 0))
		for i := range eight {
			g.I(asm.VMOVUPS, asm.Y(x), asm.At(low, 0))
			g.toHalf(asm.X(i), x, round)
			g.I(asm.VMOVUPS, asm.Y(x), asm.At(high, 0))
			g.toHalf(asm.X(x), x, round)
			g.I(asm.VINSERTI128, asm.Y(i), asm.Y(i), asm.X(x), asm.Imm(1))
			g.Add(low, stride)
			g.Add(high, stride)
		}
		g.transposeHalves()
		for i := range eight {
			g.I(asm.VMOVUPS, asm.At(p0, panelPitch*i), asm.Y(x+i))
		}
		g.Add(p0, asm.Imm32(eight*panelPitch))
		g.Add(p1, asm.Imm32(4*eight))
	})
}

// transposeHalves moves half d of register i to half i of register 8 + d, for both lanes of
// registers 0 to 7, which it overwrites.
func (g gen) transposeHalves() {
	const far = 8
	for i := range 4 { // pairs of rows
		a, b := asm.Y(2*i), asm.Y(2*i+1)
		g.I(asm.VPUNPCKLWD, asm.Y(far+2*i), a, b)
		g.I(asm.VPUNPCKHWD, asm.Y(far+2*i+1), a, b)
	}
	for i := range 2 { // fours, of two columns each
		for half := range 2 {
			a, b := asm.Y(far+4*i+half), asm.Y(far+4*i+2+half)
			g.I(asm.VPUNPCKLDQ, asm.Y(4*i+2*half), a, b)
			g.I(asm.VPUNPCKHDQ, asm.Y(4*i+2*half+1), a, b)
		}
	}
	const lowPairs, highPairs = 0x44, 0xEE
	for i := range 4 {
		a, b := asm.Y(i), asm.Y(4+i)
		g.I(asm.VSHUFPS, asm.Y(far+2*i), a, b, asm.Imm(lowPairs))
		g.I(asm.VSHUFPS, asm.Y(far+2*i+1), a, b, asm.Imm(highPairs))
	}
}

// emitStoreV16: P the address of (position, panel 0) in a V block, x; N headDim, tokens, stride. A
// token fills 32 bytes of each panel, with zeros after the head dimension.
func emitStoreV16(g gen, round bool) {
	const x = 0
	const panel = 64 * arith.Lanes * 2
	out := asm.R13
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.Mov(rows, argN(1))
	g.OverRows(rows, func() {
		g.Mov(out, p0)
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, tail)
			g.toHalf(asm.At(out, g.PartOffset(h, 2)), x, round)
			if h == g.Parts-1 {
				g.Add(out, asm.Imm32(panel))
			}
		})
		g.Add(p0, asm.Imm32(arith.Lanes*2))
		g.advance(p1, 2, tmp)
	})
}
