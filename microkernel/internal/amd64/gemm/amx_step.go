package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// subBlock scales the sums of a sub-block, while the products of the one amxAhead of it are made:
// their sums take the place of these.
func (e *amxTile) subBlock(turn int) {
	if e.spread {
		e.askAhead()
	}
	e.among(e.multiply(turn, amxAhead), e.scaleAll())
	e.each(e.keep(turn))
	e.Xor(e.sums, asm.Imm32(e.sumsOfSubBlock()))
	e.Add(e.rowAt, asm.Imm32(amxRowBytes))
}

// each emits steps one after the other.
func (e *amxTile) each(steps []func()) {
	for _, step := range steps {
		step()
	}
}

// among emits some steps evenly among the first half of many others: a core looks only so far ahead
// for what a tile has to wait for.
func (e *amxTile) among(some, many []func()) {
	done := 0
	for i, step := range many {
		for ; done*len(many) <= 2*i*len(some) && done < len(some); done++ {
			some[done]()
		}
		step()
	}
	e.each(some[done:])
}

// askAhead prefetches from where the next block of weights has been asked for.
func (e *amxTile) askAhead() {
	var t amxArgs
	for line := range 2 {
		e.Prefetch(asm.T1, asm.At(e.ahead, 64*line))
	}
	e.Add(e.ahead, e.arg(unsafe.Offsetof(t.step)))
}

// multiply makes the sums of the sub-block so many further on than the one at hand: activations,
// [rows][k], by weights, [k/4][16 columns][4 k].
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

// keep brings these sums to memory.
func (e *amxTile) keep(turn int) (steps []func()) {
	for i := range e.spans() {
		steps = append(steps, func() {
			e.TileStore(asm.AtIndex(e.sums, e.step, 1, e.sumAt(i*e.Span(), 0)), asm.Tile(e.tileNumber(turn, i)))
		})
	}
	return steps
}

// sumAt returns where the sums of row r are, for the span at k0, among those of a sub-block.
func (e *amxTile) sumAt(k0, r int) int { return k0/e.Span()*amxSumBytes + r*4*qtype.PanelWidth }

// sumsOfSubBlock returns the bytes of the sums of a sub-block, a power of two.
func (e *amxTile) sumsOfSubBlock() int { return e.spans() * amxSumBytes }

// scaleAll adds the sums of a sub-block to the accumulators.
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

// scaleSums adds the sums of some rows over the span at k0: conversion, one FMA by the product of
// the scales.
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
