package qtype

import (
	"encoding/binary"
	"math"
	"sort"
)

// Desc is one row: all that is known about a type.
type Desc struct {
	Name     string
	FileType uint32 // what general.file_type calls a file whose matrices are of the type
	Block    int    // elements of k in one block; 1 for plain floats
	Bytes    int    // of one block in a file
	Fallback Type   // what rows that are no whole number of blocks take, as llama-quantize has it; F32: nothing special

	Float Float // what the elements of a block of one are

	// Blocks of numbers. A number u stands for scale * (u - ZeroPoint), for scale * u + offset, or
	// for scale * Codebook[u].
	BlockScales []int       // where in the block its 16-bit floats are: scale, and scale of the offset
	ScaleRaw    ScaleLayout // how the file stores the scale, where that is not as a float16
	Unit        float32     // a power of two that scales are times; 0: 1
	Subs        SubScales   // scales inside the block
	SubK        int         // the consecutive k that share one, 16 or 32; 0: all of the sub-block
	SubRaw      SubLayout   // how the file stores them, where they stand
	Fields      []BitField  // the bits of a number, low bits first: one or two bit fields
	Shift       int         // bits below the first bit field, which are zero: numbers are multiples of 1<<Shift
	ZeroPoint   int         // the zero-point; 0 for types with an offset or a codebook
	Signed      bool        // numbers in the file are two's complement, u - ZeroPoint; eight bits
	Codebook    *[16]int8   // the values that numbers of up to four bits look up
	Raw         *RawForm    // how the file stores numbers that are no runs of bits; nil: as Fields say

	packed int // PanelBytes
}

// Float is the element of a plain type.
type Float uint8

// The plain elements.
const (
	None   Float = iota // a quantized type
	Single              // float32
	Half                // float16
	Brain               // bfloat16; panels hold it in pairs of k, as dot products of bfloat16 read it
)

// SubScales is the kind of scales inside a block. A new kind is one function in each backend.
type SubScales uint8

// The kinds, and what value a number u has; d and m are the scales of the block, s and o bytes of
// the sub-block; integer is u-ZeroPoint, or what u looks up.
const (
	NoSubs     SubScales = iota // d*integer, or d*u + m
	PairSubs                    // for 32 k one s and one o of up to eight bits: d*s*u - m*o
	NibbleSubs                  // for 16 k four bits of s below four bits of o: d*s*u - m*o
	SignedSubs                  // for SubK k one s with a sign: d*s*integer
	OddSubs                     // for 16 k an odd s of 1 to 31, two in a byte: d*s*integer
	ParitySubs                  // for 32 k such an s, in the places that parity leaves (see BitField): d*s*integer
	FloatSubs                   // for 16 k a float s of five bits of exponent and three of mantissa: s*integer
)

// SubBlockK is the elements of k that a kernel unpacks at a time from a quantized panel: a
// block of the small types, an eighth of a block of the K types.
const SubBlockK = 32

// SubBlocks is the number of sub-blocks in a block.
func (d *Desc) SubBlocks() int { return d.Block / SubBlockK }

// Bits is the bits of a number.
func (d *Desc) Bits() int { return d.Low(len(d.Fields)) }

// Low is the bit of a number at which a bit field begins.
func (d *Desc) Low(field int) int {
	n := d.Shift
	for _, p := range d.Fields[:field] {
		n += p.Bits
	}
	return n
}

// Affine says that values have an offset of their own in place of a common zero-point.
func (d *Desc) Affine() bool { return len(d.BlockScales) == 2 }

// Span is the consecutive k that share a scale, inside a sub-block.
func (d *Desc) Span() int {
	if d.SubK != 0 {
		return d.SubK
	}
	return SubBlockK
}

// Lift is what makes every number unsigned when it is added to what the number stands for: the
// zero-point, or for a codebook the power of two that is not below its least entry's magnitude.
func (d *Desc) Lift() int {
	if d.Codebook == nil {
		return d.ZeroPoint
	}
	n := 1
	for _, v := range d.Codebook {
		for int(v) < -n {
			n *= 2
		}
	}
	return n
}

// Largest is the largest of the unsigned numbers.
func (d *Desc) Largest() int {
	if d.Codebook == nil {
		return 1<<d.Bits() - 1
	}
	most := 0
	for _, v := range d.Codebook {
		most = max(most, int(v)+d.Lift())
	}
	return most
}

// WideBytes says that numbers, or what they look up, fill eight bits and their sign with them: the
// multiply-add of bytes without VNNI, whose sums of two products have sixteen bits, must see their
// magnitudes.
func (d *Desc) WideBytes() bool { return d.Largest() > 127 }

// Integer is the whole number that u stands for before scale and offset.
func (d *Desc) Integer(u uint8) int {
	if d.Codebook != nil {
		return int(d.Codebook[u])
	}
	return int(u) - d.ZeroPoint
}

// UnitScale is Unit, or 1 where there is none.
func (d *Desc) UnitScale() float32 {
	if d.Unit == 0 {
		return 1
	}
	return d.Unit
}

// BlockScale is the float32 of scale n of a block, as panels hold it, in units.
func (d *Desc) BlockScale(h uint16, n int) float32 {
	f := math.Float32frombits(uint32(h) << 16)
	if d.ScaleRaw.Float != Brain {
		f = FloatFromHalf(h)
	}
	if n > 0 || d.Unit == 0 {
		return f
	}
	return f * d.Unit
}

// Scales is the scale of element k of a sub-block, and the offset that is added, 0 where there is
// none. scales are those of the block in units, subs the bytes of the sub-block. Both results are
// exact.
func (d *Desc) Scales(scales [2]float32, subs [2]uint8, k int) (scale, offset float32) {
	s := subs[k/d.Span()]
	switch d.Subs {
	case PairSubs:
		return scales[0] * float32(subs[0]), -(scales[1] * float32(subs[1]))
	case NibbleSubs:
		return scales[0] * float32(s&15), -(scales[1] * float32(s>>4))
	case SignedSubs, OddSubs, ParitySubs:
		return scales[0] * float32(int8(s)), 0
	case FloatSubs:
		return math.Float32frombits(uint32(s)<<FloatSubShift) * d.Unit, 0
	}
	if d.Affine() {
		return scales[0], scales[1]
	}
	return scales[0], 0
}

// FloatSubShift makes a float32 of a byte of FloatSubs, in units.
const FloatSubShift = 20

// Finite says whether no number of the blocks of a quantized type overflows: their scales are
// numbers, and not too large for what they are multiplied with. Every block of a file is asked
// while it is loaded.
func (d *Desc) Finite(blocks []byte) bool {
	for n, at := range d.BlockScales {
		most := d.largestScale(n)
		for ; at+2 <= len(blocks) && d.ScaleRaw.Get == nil; at += d.Bytes {
			if binary.LittleEndian.Uint16(blocks[at:])&unsigned > most {
				return false
			}
		}
		for ; at < len(blocks) && d.ScaleRaw.Get != nil; at += d.Bytes {
			if d.ScaleRaw.Get(blocks[at:])&unsigned > most {
				return false
			}
		}
	}
	return true
}

// unsigned is the bits of a 16-bit float that ascend with its magnitude.
const unsigned = 0x7FFF

// largestScale is the largest scale n, a 16-bit float, by which no number overflows. Numbers of
// float16 stay far below the largest float32.
func (d *Desc) largestScale(n int) uint16 {
	return uint16(sort.Search(unsigned, func(h int) bool {
		const infinity = 0x7F800000
		f := d.BlockScale(uint16(h+1), n)
		if d.ScaleRaw.Float == Brain {
			f *= float32(d.Largest() - d.Lift())
		}
		return math.Float32bits(f)&infinity == infinity
	}))
}
