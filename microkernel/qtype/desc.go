package qtype

import (
	"encoding/binary"
	"math"
	"sort"
)

// Desc is one row of the table of types: everything the engine knows about a type.
type Desc struct {
	Name     string
	FileType uint32 // general.file_type of a file whose matrices have the type
	Block    int    // elements of k in one block; 1 for plain floats
	Bytes    int    // size of one block in a file
	Fallback Type   // of rows that are not a multiple of Block long, as in llama-quantize; F32: no special type

	Float Float // element of a block of one

	// Blocks of numbers. The value of a number u is scale * (u - ZeroPoint), scale * u + offset, or
	// scale * Codebook[u].
	BlockScales []int       // offsets in the block of its 16-bit floats: scale, and scale of the offset
	ScaleRaw    ScaleLayout // how the file stores the scale, if not as a float16
	Unit        float32     // a power of two by which scales are multiplied; 0: 1
	Subs        SubScales   // scales inside the block
	SubK        int         // number of consecutive k that share one, 16 or 32; 0: all of the sub-block
	SubRaw      SubLayout   // how the file stores them
	Fields      []BitField  // the bits of a number, low bits first: one or two bit fields
	Shift       int         // bits below the first bit field, which are zero: numbers are multiples of 1<<Shift
	ZeroPoint   int         // the zero-point; 0 for types with an offset or a codebook
	Signed      bool        // numbers in the file are two's complement, u - ZeroPoint; eight bits
	Codebook    *[16]int8   // the values that numbers of up to four bits select
	Raw         *RawForm    // how the file stores numbers that are not runs of bits; nil: as Fields describes

	packed int // result of PanelBytes
}

// Float is the element of a plain float type.
type Float uint8

// The plain elements.
const (
	None   Float = iota // a quantized type
	Single              // float32
	Half                // float16
	Brain               // bfloat16; panels store it in pairs of k, as dot products of bfloat16 read it
)

// SubScales is the kind of scales inside a block. A new kind takes one function in each backend.
type SubScales uint8

// The kinds, and the value of a number u; d and m are the scales of the block, s and o bytes of
// the sub-block; integer is the result of Desc.Integer.
const (
	NoSubs     SubScales = iota // d*integer, or d*u + m
	PairSubs                    // for 32 k one s and one o of up to eight bits: d*s*u - m*o
	NibbleSubs                  // for 16 k four bits of s below four bits of o: d*s*u - m*o
	SignedSubs                  // for SubK k one s with a sign: d*s*integer
	OddSubs                     // for 16 k an odd s from 1 to 31, two in a byte: d*s*integer
	ParitySubs                  // for 32 k such an s, in the bits that parity leaves free (see panel.go): d*s*integer
	FloatSubs                   // for 16 k a float s of five bits of exponent and three of mantissa: s*integer
)

// SubBlockK is the number of elements of k that a kernel unpacks at a time from a quantized panel:
// a block of the small types, an eighth of a block of the K types.
const SubBlockK = 32

// SubBlocks returns the number of sub-blocks in a block.
func (d *Desc) SubBlocks() int { return d.Block / SubBlockK }

// Bits returns the number of bits of a stored number.
func (d *Desc) Bits() int { return d.Low(len(d.Fields)) }

// Low returns the bit of a stored number at which a bit field begins.
func (d *Desc) Low(field int) int {
	n := d.Shift
	for _, p := range d.Fields[:field] {
		n += p.Bits
	}
	return n
}

// Affine reports whether values have an offset of their own instead of a common zero-point.
func (d *Desc) Affine() bool { return len(d.BlockScales) == 2 }

// Span returns the number of consecutive k inside a sub-block that share a scale.
func (d *Desc) Span() int {
	if d.SubK != 0 {
		return d.SubK
	}
	return SubBlockK
}

// Lift returns what must be added to the integers (see Integer) to make all of them unsigned: the
// zero-point, or for a codebook the smallest power of two that is at least the magnitude of its
// least entry.
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

// Largest returns the largest integer after Lift was added.
func (d *Desc) Largest() int {
	if d.Codebook == nil {
		return 1<<d.Bits() - 1
	}
	largest := 0
	for _, v := range d.Codebook {
		largest = max(largest, int(v)+d.Lift())
	}
	return largest
}

// WideBytes reports whether the unsigned integers need all eight bits. The multiply-add of bytes
// without VNNI adds two products in 16 bits, which these would overflow; it must be given their
// magnitudes.
func (d *Desc) WideBytes() bool { return d.Largest() > 127 }

// Integer returns the integer that the stored number u represents, before scale and offset.
func (d *Desc) Integer(u uint8) int {
	if d.Codebook != nil {
		return int(d.Codebook[u])
	}
	return int(u) - d.ZeroPoint
}

// UnitScale returns Unit, or 1 if it is not set.
func (d *Desc) UnitScale() float32 {
	if d.Unit == 0 {
		return 1
	}
	return d.Unit
}

// BlockScale returns scale n of a block, as panels store it, in float32 and multiplied by the
// unit.
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

// Scales returns the scale of element k of a sub-block, and the offset to add, 0 if the type has
// no offsets. scales are those of the block, multiplied by the unit; subs are the bytes of the
// sub-block. Both results are exact.
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

// IntegerScales returns the integer scale of element k of a sub-block, 1 if the type has none, and
// the integer to subtract after it was multiplied by the scale of offsets. The type is not one of
// FloatSubs; subs is as for Scales.
func (d *Desc) IntegerScales(subs [2]uint8, k int) (scale, offset int) {
	s := subs[k/d.Span()]
	switch d.Subs {
	case PairSubs:
		return int(subs[0]), int(subs[1])
	case NibbleSubs:
		return int(s & 15), int(s >> 4)
	case SignedSubs, OddSubs, ParitySubs:
		return int(int8(s)), 0
	}
	return 1, 0
}

// FloatSubShift is the left shift that makes a byte of FloatSubs a float32, before the unit.
const FloatSubShift = 20

// Finite reports whether all values of blocks of a quantized type are finite: the scales are
// finite numbers and no product with them overflows. It is called for every block of a file during
// loading.
func (d *Desc) Finite(blocks []byte) bool {
	for n, at := range d.BlockScales {
		limit := d.largestScale(n)
		for ; at+2 <= len(blocks) && d.ScaleRaw.Get == nil; at += d.Bytes {
			if binary.LittleEndian.Uint16(blocks[at:])&unsigned > limit {
				return false
			}
		}
		for ; at < len(blocks) && d.ScaleRaw.Get != nil; at += d.Bytes {
			if d.ScaleRaw.Get(blocks[at:])&unsigned > limit {
				return false
			}
		}
	}
	return true
}

// unsigned masks the sign of a 16-bit float; what remains ascends with the magnitude.
const unsigned = 0x7FFF

// largestScale returns the bits of the largest 16-bit float that can be scale n of a block without
// an overflow. Products with a float16 stay far below the largest float32.
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
