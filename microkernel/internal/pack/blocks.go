package pack

import (
	"encoding/binary"

	"sandwich/microkernel/qtype"
)

// blocks packs rows of blocks of a quantized type, as described by its row of qtype.
type blocks struct {
	*qtype.Desc
	steps []step // of a block; where there is a RawForm, those of sub-block n before those of n+1

	numbers []byte         // what a RawForm has written of a sub-block, 32 bytes a column
	own     qtype.SubBlock // where it writes
}

// newBlocks computes the steps that convert a block of a row to its part of a panel.
func newBlocks(d *qtype.Desc) *blocks {
	b := &blocks{Desc: d}
	if d.Raw == nil {
		for i := range d.Fields {
			b.steps = append(b.steps, fieldSteps(d, i)...)
		}
		return b
	}
	b.numbers = make([]byte, qtype.SubBlockK*qtype.PanelWidth)
	for n := range d.SubBlocks() {
		for i := range d.Fields {
			b.steps = append(b.steps, subBlockStep(d, n, i))
		}
	}
	return b
}

// pack packs rows up to k, a multiple of the block, into a panel or a part of one.
func (b *blocks) pack(panel, src []byte, rowStride, columns, k int) {
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	size := b.PanelBytes()
	for n := range k / b.Block {
		to, from := panel[n*size:][:size], src[n*b.Bytes:]
		b.packScales(to, from, rowStride, columns)
		if b.Raw != nil {
			b.packRaw(to, from, rowStride, columns)
		} else {
			for i := range b.steps {
				b.steps[i].run(&b.steps[i], to, from, rowStride, columns)
			}
		}
		for n := range b.SubBlocks() {
			b.packSubs(to[b.HeadBytes()+n*b.SubBlockBytes():], from, rowStride, columns, n)
		}
	}
}

// packRaw packs numbers that are not runs of bits.
func (b *blocks) packRaw(to, src []byte, rowStride, columns int) {
	fields := len(b.Fields)
	for n := range b.SubBlocks() {
		for c := range columns {
			b.Raw.Get(&b.own, src[c*rowStride:][:b.Bytes], n)
			*(*[qtype.SubBlockK]byte)(b.numbers[qtype.SubBlockK*c:]) = b.own.U
		}
		for i := range fields {
			s := &b.steps[n*fields+i]
			s.run(s, to, b.numbers, qtype.SubBlockK, columns)
		}
	}
}

// packScales packs the scales of the block.
func (b *blocks) packScales(to, src []byte, rowStride, columns int) {
	for h, at := range b.BlockScales {
		line, src := to[2*qtype.PanelWidth*h:][:2*qtype.PanelWidth], src[at:]
		if get := b.ScaleRaw.Get; get != nil {
			for c := range columns {
				binary.LittleEndian.PutUint16(line[2*c:], get(src[c*rowStride:]))
			}
			continue
		}
		for c := range columns {
			binary.LittleEndian.PutUint16(line[2*c:], binary.LittleEndian.Uint16(src[c*rowStride:]))
		}
	}
}

// packSubs packs the scales of sub-block n, after its numbers.
func (b *blocks) packSubs(sub, src []byte, rowStride, columns, n int) {
	if b.Subs == qtype.NoSubs {
		return
	}
	get, src, lines := b.SubRaw.Get, src[b.SubRaw.At:], b.SubBytes()/qtype.PanelWidth
	switch {
	case b.Subs == qtype.ParitySubs:
		at, _ := b.Place(0, 1)
		for plane, c := sub[at:], 0; c < columns; c++ {
			x, _ := get(src[c*rowStride:], n)
			word, s := binary.LittleEndian.Uint32(plane[4*c:])&qtype.SignBits, uint32(x>>1)
			put4(plane[4*c:], word|s&1<<25|s&2<<26|s&4<<27|s&8<<28)
		}
	case b.Subs == qtype.OddSubs:
		for c := range columns {
			x, y := get(src[c*rowStride:], n)
			sub[c] = x>>1 | y>>1<<4
		}
	case lines == 1:
		for c := range columns {
			sub[c], _ = get(src[c*rowStride:], n)
		}
	default:
		second := sub[qtype.PanelWidth:]
		for c := range columns {
			sub[c], second[c] = get(src[c*rowStride:], n)
		}
	}
}
