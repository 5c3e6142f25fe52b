package gguf

import "sandwich/microkernel/qtype"

// Blocks whose parts have scales of their own: small integers, times one f16 of the block.

// scaleOffset finds x ~ scale q - offset, q in 0..levels-1, for one part: offset is never negative,
// so that zero stays representable.
func scaleOffset(src []float32, levels int) (scale, offset float32) {
	lo, hi := span(src)
	lo = min(lo, 0)
	return (max(hi, lo) - lo) / float32(levels-1), -lo
}

// writeOffsetScales quantizes a block whose parts have a scale and an offset.
func writeOffsetScales(d *qtype.Desc, block []byte, src []float32) {
	part, levels, limit := d.Span(), 1<<d.Bits(), d.SubRaw.Most
	n := len(src) / part
	scale, offset := make([]float32, n), make([]float32, n)
	var maxScale, maxOffset float32
	for g := range n {
		scale[g], offset[g] = scaleOffset(src[g*part:(g+1)*part], levels)
		maxScale, maxOffset = max(maxScale, scale[g]), max(maxOffset, offset[g])
	}
	var t qtype.SubBlock
	ds := putHalf(&t.BlockScales[0], maxScale/float32(limit))
	dm := putHalf(&t.BlockScales[1], maxOffset/float32(limit))
	for g := range n {
		sc := nearest(scale[g]*inverse(ds), 0, limit)
		m := nearest(offset[g]*inverse(dm), 0, limit)
		inv, add := inverse(float32(ds*float32(sc))), float32(dm*float32(m))
		first := g * part % qtype.SubBlockK
		for l := range part {
			t.U[first+l] = byte(nearest((src[g*part+l]+add)*inv, 0, levels-1))
		}
		if d.Subs == qtype.NibbleSubs {
			t.Subs[first/part] = byte(sc | m<<4)
		} else {
			t.Subs = [2]uint8{byte(sc), byte(m)}
		}
		if first+part == qtype.SubBlockK {
			d.Write(block, t, g*part/qtype.SubBlockK)
		}
	}
}

// writeSignedScales quantizes a block whose parts have a scale with a sign: the extreme of each
// part takes the least number.
func writeSignedScales(d *qtype.Desc, block []byte, src []float32) {
	part, zero, limit := d.Span(), d.ZeroPoint, d.SubRaw.Most
	scale := make([]float32, len(src)/part)
	for g := range scale {
		scale[g] = extreme(src[g*part:(g+1)*part]) / float32(-zero)
	}
	var t qtype.SubBlock
	ds := putHalf(&t.BlockScales[0], extreme(scale)/float32(-limit))
	for g := range scale {
		s := nearest(scale[g]*inverse(ds), -limit, limit-1)
		inv := inverse(ds * float32(s))
		first := g * part % qtype.SubBlockK
		for l := range part {
			t.U[first+l] = byte(nearest(src[g*part+l]*inv, -zero, zero-1) + zero)
		}
		t.Subs[first/part] = byte(int8(s))
		if first+part == qtype.SubBlockK {
			d.Write(block, t, g*part/qtype.SubBlockK)
		}
	}
}
