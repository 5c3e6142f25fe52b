package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newSMEPlanes allocates the tile of the chain "integer" on SME: outer products of rows of
// activations and both planes of an unpacked superblock, whose sums stay in two tiles of ZA for all
// of its k. Then, row by row, the exact sum of the superblock is converted, and one FMA adds it
// times the product of the scales. Sums of activations, of sixteen bits, are multiplied by offsets
// of eight bits as low and high bytes.
func newSMEPlanes(a *asm.Asm, s spec) (_ *tile, emit func()) {
	e := &planesTile{&smeInt8{smeTile: &smeTile{Asm: a, s: s, lanes: s.smeLanes()}, Desc: s.B.Desc()}}
	return &tile{used: s.MR + int(smeEnd-smeW)}, e.emit
}

// planesTile generates the tile. It takes one panel.
type planesTile struct{ *smeInt8 }

// The tiles of sums, next to smeWords.
const (
	planeHighSums = asm.Imm(0)
	planeLowSums  = asm.Imm(1)
)

// Registers: smeB and planesLow point to the planes, smeBlock counts words of activations.
const (
	planesLow    = smeHead
	planesLowW   = smeHigh
	planesChunks = smeSubBlocks
)

func (e *planesTile) emit() {
	e.function(e.predicates, func() {
		e.continued(func() { e.eachAcc(asm.LD1W) }, func() {
			for i := range e.s.MR {
				e.I(asm.ZDUPB, smeAcc+asm.V(i), asm.Imm(0))
			}
		})
		e.superblocks()
		e.eachAcc(asm.ST1W)
	})
}

func (e *planesTile) predicates() {
	for _, p := range []struct {
		p     asm.P
		words int
	}{{smeRowBytes, e.s.MR}, {smeAllBytes, e.lanes}} {
		e.MovImm(smeTmp, 4*p.words)
		e.I(asm.WHILELOB, p.p, asm.ZR, smeTmp)
	}
	e.count(smeBlock, 1)
	if e.Affine() {
		e.count(smeRest, e.offsetPairs())
	}
}

// superblocks emits the loop over superblocks.
func (e *planesTile) superblocks() {
	var t kernel.TileArgs
	done := e.NewLabel()
	e.get(smeA, unsafe.Offsetof(t.A))
	e.get(smeB, unsafe.Offsetof(t.B))
	e.get(smeLeft, unsafe.Offsetof(t.Main))
	e.CBZ(smeLeft, done)
	e.Loop(smeLeft, func() {
		e.AddImm(planesLow, smeB, kernel.PlaneBytes)
		e.products()
		// The pointers are after the first plane and after the numbers of the activations.
		e.loadRows(smeBlock, kernel.ActKScale-kernel.ActQ8Group)
		e.column(smeScaleA, 0)
		e.loadPlane(smeScale, kernel.PlaneScales-kernel.PlaneBytes)
		e.addSums(kernel.PlaneShift, smeScale, asm.ZFMLA)
		if e.Affine() {
			e.offsets()
			e.loadPlane(smeOffset, kernel.PlaneScales+kernel.PlaneGroup-kernel.PlaneBytes)
			e.addSums(8, smeOffset, asm.ZFMLS)
		}
		e.AddImm(smeA, smeA, kernel.ActQ8KBytes-kernel.ActQ8Group)
		e.AddImm(smeB, smeB, kernel.PlanesBlock-kernel.PlaneBytes)
	})
	e.Bind(done)
}

// loadPlane loads what lies at an offset from the panel pointer.
func (e *planesTile) loadPlane(z asm.V, at int) {
	e.AddImm(smeTmp, smeB, at)
	e.I(asm.LD1W, z, smeAll, smeTmp)
}

// loadRows loads the words of a predicate at an offset in the activations of all rows into a tile.
func (e *planesTile) loadRows(p asm.P, at int) {
	var t kernel.TileArgs
	e.AddImm(smeRow, smeA, at)
	e.get(smeStep, unsafe.Offsetof(t.LDA))
	e.rows(func() {
		e.I(asm.LD1ZA, asm.Imm(smeWords), p, smeRow)
		e.I(asm.ADD, smeRow, smeRow, smeStep)
	})
	e.slice = -1
}

// clearSums clears both tiles of sums.
func (e *planesTile) clearSums() {
	e.I(asm.ZEROTILE, planeHighSums)
	e.I(asm.ZEROTILE, planeLowSums)
}

// products computes the sums of both planes of a superblock.
func (e *planesTile) products() {
	e.clearSums()
	e.MovImm(planesChunks, kernel.ActQ8Group/(4*e.lanes))
	e.Loop(planesChunks, func() {
		e.loadRows(smeAll, 0)
		for word := range e.lanes {
			e.column(smeT, word)
			e.I(asm.LD1W, smeW, smeAll, smeB)
			e.I(asm.LD1W, planesLowW, smeAll, planesLow)
			e.I(asm.SMOPA, planeHighSums, smeRowBytes, smeAllBytes, smeT, smeW)
			e.I(asm.SMOPA, planeLowSums, smeRowBytes, smeAllBytes, smeT, planesLowW)
			e.AddImm(smeB, smeB, kernel.PlaneGroup)
			e.AddImm(planesLow, planesLow, kernel.PlaneGroup)
		}
		e.AddImm(smeA, smeA, 4*e.lanes)
	})
}

// offsets computes the sums of offsets times the high and the low bytes of the sums of activations.
// A word of them is two sums, and a word of offsets two offsets of at most eight bits.
func (e *planesTile) offsets() {
	at := kernel.ActKHalfSums
	if e.Span() == qtype.SubBlockK {
		at = kernel.ActKSums
	}
	e.clearSums()
	e.loadRows(smeRest, at-kernel.ActQ8Group)
	for word := range e.offsetPairs() {
		e.column(smeT, word)
		e.loadPlane(smeW, kernel.PlanePairs-kernel.PlaneBytes+kernel.PlaneGroup*word)
		e.I(asm.ZLSLS, smeHigh, smeW, asm.Imm(8))
		e.I(asm.UMOPA, planeLowSums, smeRowBytes, smeAllBytes, smeT, smeW)
		e.I(asm.SUMOPA, planeHighSums, smeRowBytes, smeAllBytes, smeT, smeHigh)
	}
}

// addSums adds the sums, high ones shifted, times a scale of weights and that of the activations to
// the chains.
func (e *planesTile) addSums(shift int, scale asm.V, add *asm.Op) {
	for r0 := 0; r0 < e.s.MR; r0 += len(smeD) {
		n := min(len(smeD), e.s.MR-r0)
		e.at(r0)
		for i, d := range smeD[:n] {
			e.I(asm.ROW, d, smeAll, planeHighSums, asm.Imm(i))
		}
		for i, x := range smeX[:n] {
			e.I(asm.ROW, x, smeAll, planeLowSums, asm.Imm(i))
		}
		for i, d := range smeD[:n] {
			e.I(asm.ZLSLS, d, d, asm.Imm(shift))
			e.I(asm.ZADDS, d, d, smeX[i])
			e.I(asm.ZSCVTF, d, smeAll, d)
		}
		for i, d := range smeD[:n] {
			e.I(asm.ZDUPS, smeX[i], smeScaleA, asm.Imm(r0+i))
			e.I(asm.ZFMUL, smeX[i], smeX[i], scale)
			e.I(add, e.acc(r0+i, 0), smeAll, d, smeX[i])
		}
	}
}
