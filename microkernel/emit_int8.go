package microkernel

import (
	"unsafe"

	"sandwich/microkernel/internal/asm"
)

// emitInt8 generates the tile of the chain "block". Per block of 32 k: the exact integer dot product of every accumulator,
// its conversion to float, and one FMA by the product of the two scales.
func emitInt8(a *asm.Asm, s Spec) {
	e := &int8Tile{emitter: newEmitter(a, s)}
	e.dot = e.vecs(s.MR * e.v)
	e.w = e.vecs(e.v)
	e.x = e.vec()
	if s.Dot == MAdd || !e.wide() {
		e.t = e.vec()
	}
	if s.Dot == MAdd && s.B == Q8_0 {
		e.abs = e.vecs(e.v)
	}
	if s.B == Q4_0 && e.wide() {
		e.nibble = e.vec()
	}
	var t tileArgs
	e.function(func() {
		if s.B == Q4_0 && e.wide() {
			e.I(asm.VPBROADCASTD, e.nibble, e.ConstU32(0x0F0F0F0F))
		}
	}, func() {
		e.loop(unsafe.Offsetof(t.main), func() {
			e.block()
			e.advance(e.aBase, ActQ8Bytes)
			e.advance(e.bBase, PanelOffset(s.B, 32))
		})
	})
}

type int8Tile struct {
	*emitter
	dot    []asm.Vec // integer accumulators of the block, laid out like acc
	w      []asm.Vec // weights of four k; then their scales
	abs    []asm.Vec // magnitudes of the weights (MAdd, q8_0)
	x      asm.Vec   // four activations in all lanes; then a product of scales
	t      asm.Vec   // a product before it is added
	nibble asm.Vec
}

// Where things stand in a block of activations.
const (
	actScale = 0
	actBias  = 4
	actQ     = 8
)

func (e *int8Tile) block() {
	if e.s.Dot != MAdd {
		e.startFromBias()
	}
	bytes := PanelOffset(e.s.B, 32)
	for g := range 8 {
		e.prefetch(bytes*g/8, bytes*(g+1)/8)
		for j := range e.v {
			e.weights(j, g)
		}
		for r := range e.s.MR {
			e.row(r, g)
		}
	}
	if e.s.Dot == MAdd {
		e.finishMAdd()
	}
	for j := range e.v {
		e.I(asm.VCVTPH2PS, e.w[j], e.b(j, 0, e.w[j].Bytes()/2))
	}
	for r := range e.s.MR {
		scale := e.a(r, actScale)
		if !e.wide() {
			e.I(asm.VBROADCASTSS, e.x, scale)
		}
		for j := range e.v {
			d, both := e.dot[r*e.v+j], e.x
			e.I(asm.VCVTDQ2PS, d, d)
			if e.wide() {
				e.I(asm.VMULPS, both, e.w[j], scale.Bcast())
			} else {
				both = e.t
				e.I(asm.VMULPS, both, e.w[j], e.x)
			}
			e.I(asm.VFMADD231PS, e.acc[r*e.v+j], d, both)
		}
	}
}

// startFromBias sets the integer accumulators to what undoes the stored weights' offset: -zero times the sum of the block's
// activations, where the bias is for a zero of 128.
func (e *int8Tile) startFromBias() {
	for r := range e.s.MR {
		row := e.dot[r*e.v:][:e.v]
		for j, d := range row {
			switch {
			case e.s.B == Q8_0:
				e.I(asm.VPBROADCASTD, d, e.a(r, actBias))
			case j == 0:
				e.I(asm.VPBROADCASTD, d, e.a(r, actBias))
				e.I(asm.VPSRAD, d, d, asm.Imm(4))
			default:
				e.I(asm.VMOVAPS, d, row[0])
			}
		}
	}
}

// weights brings the numbers of four k, group g of the block, of vector j into w: unsigned, or for the multiply-add of q8_0
// signed with the magnitude in abs.
func (e *int8Tile) weights(j, g int) {
	w := e.w[j]
	if e.s.B == Q4_0 {
		word := e.b(j, 32+64*(g/2), w.Bytes())
		switch {
		case e.wide() && g%2 == 0:
			e.I(asm.VPANDD, w, e.nibble, word)
		case e.wide():
			e.I(asm.VPSRLD, w, word, asm.Imm(4))
			e.I(asm.VPANDD, w, w, e.nibble)
		default:
			e.I(asm.VMOVUPS, w, word)
			if g%2 == 1 {
				e.I(asm.VPSRLD, w, w, asm.Imm(4))
			}
			e.I(asm.VPAND, w, w, e.splat(0x0F0F0F0F))
		}
		return
	}
	e.I(asm.VMOVUPS, w, e.b(j, 32+64*g, w.Bytes()))
	if e.s.Dot == MAdd {
		e.I(asm.VPXOR, w, w, e.splat(0x80808080))
		e.I(asm.VPABSB, e.abs[j], w)
	}
}

// row adds the products of four k to the integer accumulators of row r.
func (e *int8Tile) row(r, g int) {
	x := e.a(r, actQ+4*g)
	if e.s.Form == Load {
		e.I(asm.VPBROADCASTD, e.x, x)
	}
	for j := range e.v {
		d := e.dot[r*e.v+j]
		switch {
		case e.s.Dot == MAdd:
			e.multiplyAdd(d, j, g == 0)
		case e.s.Form == Embed:
			e.I(asm.VPDPBUSD, d, e.w[j], x.Bcast())
		case e.s.Dot == AVXVNNI:
			e.I(asm.VPDPBUSDV, d, e.w[j], e.x)
		default:
			e.I(asm.VPDPBUSD, d, e.w[j], e.x)
		}
	}
}

// multiplyAdd is the dot product without VNNI. Pairs of products are summed in 16 bits: four-bit weights cannot
// overflow there even over a whole block (8 * 2 * 15 * 127 = 30480). Eight-bit ones give their sign to the activation, so that
// a pair reaches 2 * 128 * 127 = 32512 at the most, and are widened to 32 bits at once.
func (e *int8Tile) multiplyAdd(d asm.Vec, j int, first bool) {
	to := e.t
	if e.s.B == Q4_0 {
		if first {
			to = d
		}
		e.I(asm.VPMADDUBSW, to, e.w[j], e.x)
		if !first {
			e.I(asm.VPADDW, d, d, to)
		}
		return
	}
	e.I(asm.VPSIGNB, to, e.x, e.w[j])
	e.I(asm.VPMADDUBSW, to, e.abs[j], to)
	if first {
		e.I(asm.VPMADDWD, d, to, e.ones())
		return
	}
	e.I(asm.VPMADDWD, to, to, e.ones())
	e.I(asm.VPADDD, d, d, to)
}

// ones is a vector of 16-bit ones in the pool.
func (e *int8Tile) ones() asm.Mem {
	words := make([]uint32, e.w[0].Bytes()/4)
	for i := range words {
		words[i] = 0x00010001
	}
	return e.ConstU32s(words...)
}

// finishMAdd sums the 16-bit pairs of four-bit weights and takes off eight times the sum of the activations.
func (e *int8Tile) finishMAdd() {
	if e.s.B != Q4_0 {
		return
	}
	for r := range e.s.MR {
		e.I(asm.VPBROADCASTD, e.x, e.a(r, actBias))
		e.I(asm.VPSRAD, e.x, e.x, asm.Imm(4))
		for j := range e.v {
			d := e.dot[r*e.v+j]
			e.I(asm.VPMADDWD, d, d, e.ones())
			e.I(asm.VPADDD, d, d, e.x)
		}
	}
}
