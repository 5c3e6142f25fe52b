package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// subBlock scales the sums of a sub-block while the products of the sub-block amxAhead further are
// computed; their sums replace the scaled ones.
func (e *amxTile) subBlock(turn int) {
	if e.spread {
		e.prefetchSpread()
	}
	e.interleave(e.multiply(turn, amxAhead), e.scaleAll())
	e.each(e.storeSums(turn))
	e.Xor(e.sums, asm.Imm32(e.sumsOfSubBlock()))
	e.Add(e.rowAt, asm.Imm32(amxRowBytes))
}

// each emits the steps in order.
func (e *amxTile) each(steps []func()) {
	for _, step := range steps {
		step()
	}
}

// interleave emits the steps of some evenly among the first half of the steps of many: a core looks
// only a limited distance ahead for instructions that do not wait for a tile.
func (e *amxTile) interleave(some, many []func()) {
	done := 0
	for i, step := range many {
		for ; done*len(many) <= 2*i*len(some) && done < len(some); done++ {
			some[done]()
		}
		step()
	}
	e.each(some[done:])
}

// prefetchSpread emits the spread prefetches of a sub-block.
func (e *amxTile) prefetchSpread() {
	var t amxArgs
	for line := range 2 {
		e.Prefetch(asm.T1, asm.At(e.ahead, 64*line))
	}
	e.Add(e.ahead, e.arg(unsafe.Offsetof(t.step)))
}

// multiply returns the steps that compute the sums of the sub-block `further` after the current
// one: activations, [rows][k], times weights, [k/4][16 columns][4 k].
func (e *amxTile) multiply(turn, further int) (steps []func()) {
	for i := range e.spans() {
		n, k := e.tileNumber(turn, i), i*e.Span()
		a, b, c := amxA+asm.Tile(n%2), amxB+asm.Tile(n%2), asm.Tile(n)
		steps = append(steps,
			func() { e.TileLoad(a, asm.AtIndex(e.rowAt, e.step, 1, further*amxRowBytes+kernel.ActQ+k)) },
			func() { e.TileLoad(b, asm.AtIndex(e.bytes, e.step, 1, further*amxPanelBytes+16*k)) },
			func() {
				e.TileZero(c)
				e.TileDot(asm.TDPBSSD, c, a, b)
			})
	}
	return steps
}

// storeSums returns the steps that store these sums.
func (e *amxTile) storeSums(turn int) (steps []func()) {
	for i := range e.spans() {
		steps = append(steps, func() {
			e.TileStore(asm.AtIndex(e.sums, e.step, 1, e.sumAt(i*e.Span(), 0)), asm.Tile(e.tileNumber(turn, i)))
		})
	}
	return steps
}

// sumAt returns the offset of the sums of row r for the span at k0 in the sums of a sub-block.
func (e *amxTile) sumAt(k0, r int) int { return k0/e.Span()*amxSumBytes + r*4*qtype.PanelWidth }

// sumsOfSubBlock returns the bytes of the sums of a sub-block, a power of two.
func (e *amxTile) sumsOfSubBlock() int { return e.spans() * amxSumBytes }

// scaleAll returns the steps that add the sums of a sub-block to the accumulators.
func (e *amxTile) scaleAll() (steps []func()) {
	for k := 0; k < qtype.SubBlockK; k += e.Span() {
		steps = append(steps, func() { e.scale(e.w[0], 0, k) })
		for r := 0; r < e.s.MR; r += amxSideBySide {
			steps = append(steps, func() { e.scaleSums(k, r, min(r+amxSideBySide, e.s.MR)) })
		}
		if e.Affine() {
			steps = append(steps, func() { e.offsets(k) })
		}
	}
	return steps
}

// scaleSums adds the sums of some rows over the span at k0: conversion, then one FMA by the
// product of the scales.
func (e *amxTile) scaleSums(k0, from, to int) {
	for r := from; r < to; r++ {
		e.I(asm.VCVTDQ2PS, e.sumsOf[r-from], asm.At(e.sums, e.sumAt(k0, r)))
	}
	for r := from; r < to; r++ {
		e.I(asm.VMULPS, e.scales[r-from], e.w[0], e.a(r, kernel.ActScale).Bcast())
	}
	for r := from; r < to; r++ {
		e.I(asm.VFMADD231PS, e.acc[r], e.sumsOf[r-from], e.scales[r-from])
	}
}
