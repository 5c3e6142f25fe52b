package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// Blocks of a KV cache of int8 (see KVQ8 of package microkernel) are widened to float32 panels: 16
// lanes, rows of 64 bytes.

// emitWidenK8: P dst, src, scales; N sets of 32 rows, one panel. The rows of a set share their
// scales, one for each lane, which lie 64 positions apart.
func emitWidenK8(g *gen) {
	const x, scale, unroll = 0, 8, 4
	turns := asm.R13
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(0))
	g.overRows(rows, func() {
		for h := range g.parts {
			g.I(asm.VMOVUPS, g.v(scale+h), asm.At(p2, g.part(h, 4)))
		}
		g.MovImm(turns, scaleDims/unroll)
		g.overRows(turns, func() {
			for i := range unroll {
				for h := range g.parts {
					r := x + i*g.parts + h
					g.I(asm.VPMOVSXBD, g.v(r), asm.At(p1, i*group+g.part(h, 1)))
					g.I(asm.VCVTDQ2PS, g.v(r), g.v(r))
					g.I(asm.VMULPS, g.v(r), g.v(r), g.v(scale+h))
					g.I(asm.VMOVUPS, asm.At(p0, 4*(i*group)+g.part(h, 4)), g.v(r))
				}
			}
			g.Add(p1, asm.Imm32(unroll*group))
			g.Add(p0, asm.Imm32(4*unroll*group))
		})
		g.Add(p2, asm.Imm32(4*positions))
	})
}

// emitWidenV8: P dst, src, scales; N pairs of panels of 64 rows. A row has one scale, the same in
// both panels of a pair.
func emitWidenV8(g *gen) {
	const x, scale, unroll = 0, 8, 2
	turns := asm.R13
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(0))
	g.overRows(rows, func() {
		g.MovImm(turns, positions/unroll)
		g.overRows(turns, func() {
			for i := range unroll {
				g.I(asm.VBROADCASTSS, g.v(scale+i), asm.At(p2, 4*i))
				for h := range 2 * g.parts {
					r := x + (i*2*g.parts+h)%scale
					panel, part := h/g.parts, h%g.parts
					g.I(asm.VPMOVSXBD, g.v(r), asm.At(p1, (panel*positions+i)*group+g.part(part, 1)))
					g.I(asm.VCVTDQ2PS, g.v(r), g.v(r))
					g.I(asm.VMULPS, g.v(r), g.v(r), g.v(scale+i))
					g.I(asm.VMOVUPS, asm.At(p0, 4*(panel*positions+i)*group+g.part(part, 4)), g.v(r))
				}
			}
			g.Add(p2, asm.Imm32(4*unroll))
			g.Add(p1, asm.Imm32(unroll*group))
			g.Add(p0, asm.Imm32(4*unroll*group))
		})
		g.Add(p1, asm.Imm32(positions*group))
		g.Add(p0, asm.Imm32(4*positions*group))
	})
}
