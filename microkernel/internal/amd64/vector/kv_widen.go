package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// Int8 blocks of a KV cache (vec.KVQ8) are widened to float32 panels: 16 lanes, rows of 64 bytes.

// emitWidenK8: P dst, src, scales; N sets of 32 rows, one panel. The rows of a set share their
// scales, one per lane, which are 64 positions apart.
func emitWidenK8(g gen) {
	const x, scale, unroll = 0, 8, 4
	turns := asm.R13
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(0))
	g.OverRows(rows, func() {
		for h := range g.Parts {
			g.I(asm.VMOVUPS, g.V(scale+h), asm.At(p2, g.PartOffset(h, 4)))
		}
		g.MovImm(turns, arith.ScaleDims/unroll)
		g.OverRows(turns, func() {
			for i := range unroll {
				for h := range g.Parts {
					r := x + i*g.Parts + h
					g.I(asm.VPMOVSXBD, g.V(r), asm.At(p1, i*arith.Lanes+g.PartOffset(h, 1)))
					g.I(asm.VCVTDQ2PS, g.V(r), g.V(r))
					g.I(asm.VMULPS, g.V(r), g.V(r), g.V(scale+h))
					g.I(asm.VMOVUPS, asm.At(p0, 4*(i*arith.Lanes)+g.PartOffset(h, 4)), g.V(r))
				}
			}
			g.Add(p1, asm.Imm32(unroll*arith.Lanes))
			g.Add(p0, asm.Imm32(4*unroll*arith.Lanes))
		})
		g.Add(p2, asm.Imm32(4*positions))
	})
}

// emitWidenV8: P dst, src, scales; N pairs of panels of 64 rows. A row has one scale for both
// panels of a pair.
func emitWidenV8(g gen) {
	const x, scale, unroll = 0, 8, 2
	turns := asm.R13
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(0))
	g.OverRows(rows, func() {
		g.MovImm(turns, positions/unroll)
		g.OverRows(turns, func() {
			for i := range unroll {
				g.I(asm.VBROADCASTSS, g.V(scale+i), asm.At(p2, 4*i))
				for h := range 2 * g.Parts {
					r := x + (i*2*g.Parts+h)%scale
					panel, part := h/g.Parts, h%g.Parts
					g.I(asm.VPMOVSXBD, g.V(r), asm.At(p1, (panel*positions+i)*arith.Lanes+g.PartOffset(part, 1)))
					g.I(asm.VCVTDQ2PS, g.V(r), g.V(r))
					g.I(asm.VMULPS, g.V(r), g.V(r), g.V(scale+i))
					g.I(asm.VMOVUPS, asm.At(p0, 4*(panel*positions+i)*arith.Lanes+g.PartOffset(part, 4)), g.V(r))
				}
			}
			g.Add(p2, asm.Imm32(4*unroll))
			g.Add(p1, asm.Imm32(unroll*arith.Lanes))
			g.Add(p0, asm.Imm32(4*unroll*arith.Lanes))
		})
		g.Add(p1, asm.Imm32(positions*arith.Lanes))
		g.Add(p0, asm.Imm32(4*positions*arith.Lanes))
	})
}
