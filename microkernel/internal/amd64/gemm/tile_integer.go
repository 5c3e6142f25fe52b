package gemm

import (
	"math/bits"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// The chain "integer": the accumulators are exact integer sums of a superblock, and C holds the
// chains, as in the chain "group" (startGroups).

// scaleIntegers adds the dot products of the span at k0, times its integer scales, to the
// accumulators.
func (e *int8Tile) scaleIntegers(k0 int) {
	if e.Subs == qtype.NoSubs {
		for i, d := range e.dot {
			e.I(asm.VPADDD, e.acc[i], e.acc[i], d)
		}
		return
	}
	for j := range e.v {
		e.integerScale(e.w[j], j, k0)
		if e.dotInWord() && e.Subs == qtype.SignedSubs {
			e.and(e.w[j], e.w[j], 0xFFFF)
		}
	}
	for i, d := range e.dot {
		if e.dotInWord() {
			// The lower half of a word has the entire dot product; the upper half is multiplied by
			// zeros.
			e.I(asm.VPDPWSSD, e.acc[i], d, e.w[i%e.v])
			continue
		}
		e.I(asm.VPMULLD, d, d, e.w[i%e.v])
		e.I(asm.VPADDD, e.acc[i], e.acc[i], d)
	}
}

// dotInWord reports whether the dot product of a span fits sixteen bits, so that one VPDPWSSD
// scales and adds it.
func (e *int8Tile) dotInWord() bool {
	return e.s.Dot == kernel.VNNI && e.Span()*127*e.Largest() <= 1<<15-1
}

// integerScale loads the integer scales of vector j for the span at k0.
func (e *int8Tile) integerScale(v asm.Vec, j, k0 int) {
	switch e.Subs {
	case qtype.PairSubs:
		e.I(asm.VPMOVZXBD, v, e.sub(j, 0))
	case qtype.NibbleSubs:
		e.I(asm.VPMOVZXBD, v, e.sub(j, k0/16))
		e.and(v, v, 15)
	default:
		e.loadSub(v, e.t[0], j, k0)
	}
}

// Offsets in the activations of a finished superblock from its last byte of numbers on, where the
// row pointers are.
const (
	doneHalfSums = kernel.ActKHalfSums - kernel.ActQ8Group
	doneSums     = kernel.ActKSums - kernel.ActQ8Group
	doneScale    = kernel.ActKScale - kernel.ActQ8Group
	doneNext     = kernel.ActQ8KBytes - kernel.ActQ8Group
)

// endSuperblock adds the sums of the finished superblock to C and starts the next one.
func (e *int8Tile) endSuperblock() {
	if zero := e.zeroNumber(); zero > 0 {
		e.sumSpans(e.scalePair)
		for i, d := range e.dot {
			if n := bits.Len(uint(zero)) - 1; n > 0 {
				e.I(asm.VPSLLD, d, d, asm.Imm(n))
			}
			e.I(asm.VPSUBD, e.acc[i], e.acc[i], d)
		}
	}
	if e.Affine() {
		e.sumSpans(e.offsetPair)
	}
	e.addSums(asm.VFMADD231PS, 0, e.acc)
	if e.Affine() {
		e.addSums(asm.VFNMADD231PS, 1, e.dot)
	}
	for _, acc := range e.acc {
		e.zero(acc)
	}
	e.advance(e.aBase, doneNext)
}

// addSums adds integer sums, times scale n of the superblock and that of the activations, to C.
func (e *int8Tile) addSums(op *asm.Op, n int, sums []asm.Vec) {
	for j := range e.v {
		e.loadBlockScale(e.w[j], j, n)
	}
	c, scale := e.x[0], e.t[0]
	e.eachC(e.cRow, func(r, j int, m asm.Mem, masked *asm.Vec) {
		sum := sums[r*e.v+j]
		e.I(asm.VCVTDQ2PS, sum, sum)
		if e.wide() {
			e.I(asm.VMULPS, scale, e.w[j], e.a(r, doneScale).Bcast())
		} else {
			e.I(asm.VBROADCASTSS, scale, e.a(r, doneScale))
			e.I(asm.VMULPS, scale, scale, e.w[j])
		}
		e.loadFrom(c, j, m, masked)
		e.I(op, c, sum, scale)
		e.storeVec(c, j, m, masked)
	})
}

// sumSpans computes the sums over the superblock of the integers of a span, which pair loads for
// two spans, times the sum of its activations.
func (e *int8Tile) sumSpans(pair func(v asm.Vec, j, i int)) {
	at := doneSums
	if e.Span() < qtype.SubBlockK {
		at = doneHalfSums
	}
	for _, d := range e.dot {
		e.zero(d)
	}
	for i := range kernel.ActQ8Group / e.Span() / 2 {
		for j := range e.v {
			pair(e.w[j], j, i)
		}
		for r := range e.s.MR {
			if e.s.Dot != kernel.VNNI {
				e.I(asm.VPBROADCASTD, e.x[0], e.a(r, at+4*i))
			}
			for j := range e.v {
				d := e.dot[r*e.v+j]
				if e.s.Dot == kernel.VNNI {
					e.I(asm.VPDPWSSD, d, e.w[j], e.a(r, at+4*i).Bcast())
					continue
				}
				e.I(asm.VPMADDWD, e.t[0], e.w[j], e.x[0])
				e.I(asm.VPADDD, d, d, e.t[0])
			}
		}
	}
}

// scalePair loads the integer scales of spans 2i and 2i+1 into the halves of the words of vector j.
func (e *int8Tile) scalePair(v asm.Vec, j, i int) {
	if e.Subs == qtype.NoSubs {
		e.I(asm.VMOVUPS, v, e.ones())
		return
	}
	load := func(v asm.Vec, n int) {
		e.atSpan(n, func(k0 int) { e.integerScale(v, j, k0) })
	}
	load(v, 2*i)
	e.and(v, v, 0xFFFF)
	// integerScale overwrites t[0], so the second one goes to x[0].
	load(e.x[0], 2*i+1)
	e.I(asm.VPSLLD, e.x[0], e.x[0], asm.Imm(16))
	e.or(v, e.x[0])
}

// offsetPair loads the integer offsets of spans 2i and 2i+1.
func (e *int8Tile) offsetPair(v asm.Vec, j, i int) {
	load := func(v asm.Vec, n int) {
		e.atSpan(n, func(k0 int) {
			if e.Subs == qtype.NibbleSubs {
				e.I(asm.VPMOVZXBD, v, e.sub(j, k0/16))
				e.I(asm.VPSRLD, v, v, asm.Imm(4))
				return
			}
			e.I(asm.VPMOVZXBD, v, e.sub(j, 1))
		})
	}
	load(v, 2*i)
	load(e.x[0], 2*i+1)
	e.I(asm.VPSLLD, e.x[0], e.x[0], asm.Imm(16))
	e.or(v, e.x[0])
}

// atSpan runs body with operands of the sub-block of span n of the superblock, after whose last
// sub-block the panel pointers are. k0 is where the span begins in its sub-block.
func (e *int8Tile) atSpan(n int, body func(k0 int)) {
	k := n * e.Span()
	e.passed = (k/qtype.SubBlockK - e.SubBlocks()) * e.SubBlockBytes()
	body(k % qtype.SubBlockK)
	e.passed = 0
}
