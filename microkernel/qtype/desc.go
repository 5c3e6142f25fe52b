package qtype

import (
	"errors"
	"fmt"
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
	Halves    []int     // where in the block its float16 numbers are: the scale and, for types with an offset, that of the offset
	Subs      SubScales // scales inside the block
	SubRaw    SubLayout // how the file stores them, where they stand
	Pieces    []Piece   // the bits of a number, low bits first: one or two pieces
	ZeroPoint int       // the zero-point; 0 for types with an offset or a codebook
	Signed    bool      // numbers in the file are two's complement, u - ZeroPoint; eight bits
	Codebook  *[16]int8 // the values that four-bit numbers look up
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

// The kinds, and what value a number u has; d and m are the halves of the block, s and o bytes of
// the turn.
const (
	NoSubs     SubScales = iota // d*(u-ZeroPoint), or d*u + m
	PairSubs                    // for 32 k one s and one o of up to eight bits: d*s*u - m*o
	NibbleSubs                  // for 16 k four bits of s below four bits of o: d*s*u - m*o
	SignedSubs                  // for 16 k one s with a sign: d*s*(u-ZeroPoint)
)

// TurnK is the elements of k that a kernel takes in one turn of its loop over a quantized panel: a
// block of the small types, an eighth of a block of the K types.
const TurnK = 32

// Turns is the number of turns in a block.
func (d *Desc) Turns() int { return d.Block / TurnK }

// Bits is the bits of a number.
func (d *Desc) Bits() (n int) {
	for _, p := range d.Pieces {
		n += p.Bits
	}
	return n
}

// Affine says that values have an offset of their own in place of a common zero-point.
func (d *Desc) Affine() bool { return len(d.Halves) == 2 }

// Span is the consecutive k that share a scale, inside a turn.
func (d *Desc) Span() int {
	if d.Subs == NibbleSubs || d.Subs == SignedSubs {
		return 16
	}
	return TurnK
}

// WideBytes says that numbers, or what they look up, fill eight bits and their sign with them: the
// multiply-add of bytes without VNNI, whose sums of two products have sixteen bits, must see their
// magnitudes.
func (d *Desc) WideBytes() bool { return d.Bits() == 8 || d.Codebook != nil }

// Integer is the whole number that u stands for before scale and offset.
func (d *Desc) Integer(u uint8) int {
	if d.Codebook != nil {
		return int(d.Codebook[u])
	}
	return int(u) - d.ZeroPoint
}

// Scales is the scale of element k of a turn, and the offset that is added, 0 where there is none.
// halves are those of the block, subs the bytes of the turn. Both results are exact.
func (d *Desc) Scales(halves [2]float32, subs [2]uint8, k int) (scale, offset float32) {
	s := subs[k/16]
	switch d.Subs {
	case PairSubs:
		return halves[0] * float32(subs[0]), -(halves[1] * float32(subs[1]))
	case NibbleSubs:
		return halves[0] * float32(s&15), -(halves[1] * float32(s>>4))
	case SignedSubs:
		return halves[0] * float32(int8(s)), 0
	}
	if d.Affine() {
		return halves[0], halves[1]
	}
	return halves[0], 0
}

// check says what the kernels could not make of a description.
func (d *Desc) check() error {
	plain := map[Float]int{Single: 4, Half: 2, Brain: 2}[d.Float]
	switch {
	case d.Name == "":
		return errors.New("it has no name")
	case d.Block == 1 && plain != 0 && d.Bytes == plain:
		return nil
	case d.Float != None || d.Block < TurnK || d.Block%TurnK != 0:
		return fmt.Errorf("a block has one float or a multiple of %d numbers, not %d", TurnK, d.Block)
	case len(d.Halves) < 1 || len(d.Halves) > 2 || len(d.Pieces) < 1 || len(d.Pieces) > 2:
		return errors.New("a block has one or two halves, and numbers of one or two pieces")
	case d.Affine() && (d.ZeroPoint != 0 || d.Codebook != nil) || !d.Affine() && d.Codebook == nil && d.ZeroPoint != 1<<(d.Bits()-1):
		return errors.New("numbers have an offset, a codebook, or their zero-point in the middle")
	case d.Codebook != nil && (d.Bits() != 4 || d.Subs != NoSubs):
		return errors.New("a codebook has sixteen values and no scales inside the block")
	case d.Signed && d.Bits() != 8 || d.Bits() == 8 && (d.Affine() || d.Subs != NoSubs):
		return errors.New("eight bits have one scale, and only they have a sign")
	case (d.Subs == PairSubs || d.Subs == NibbleSubs) != (d.Affine() && d.Subs != NoSubs):
		return errors.New("scales in pairs or nibbles have offsets, those with a sign have none")
	case (d.Subs != NoSubs) != (d.SubRaw.Get != nil):
		return errors.New("scales inside a block need a layout, and only they")
	}
	return d.checkBytes()
}

// checkBytes says what of the description lies outside the block.
func (d *Desc) checkBytes() error {
	for _, at := range d.Halves {
		if at < 0 || at+2 > d.Bytes {
			return fmt.Errorf("the half at byte %d is outside the block", at)
		}
	}
	if end := d.SubRaw.At + d.SubRaw.Bytes; d.SubRaw.At < 0 || end > d.Bytes {
		return errors.New("the scales are outside the block")
	}
	for _, p := range d.Pieces {
		switch {
		case p.Bits != 1 && p.Bits != 2 && p.Bits != 4 && p.Bits != 8:
			return fmt.Errorf("a piece of %d bits does not divide a byte", p.Bits)
		case p.At < 0 || p.At+d.Block*p.Bits/8 > d.Bytes:
			return fmt.Errorf("the piece at byte %d is outside the block", p.At)
		case p.Run != 1 && p.Run != 16 && p.Run%TurnK != 0 || d.Block%(p.Run*8/p.Bits) != 0:
			return fmt.Errorf("a run of %d elements does not fit a block of %d", p.Run, d.Block)
		}
	}
	return nil
}
