package qtype

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// check returns why kernels cannot be generated for a description, or nil.
func (d *Desc) check() error {
	plain := map[Float]int{Single: 4, Half: 2, Brain: 2}[d.Float]
	switch {
	case d.Name == "":
		return errors.New("it has no name")
	case d.Block == 1 && plain != 0 && d.Bytes == plain:
		return nil
	case d.Float != None || d.Block < SubBlockK || d.Block%SubBlockK != 0:
		return fmt.Errorf("a block has one float or a multiple of %d numbers, not %d", SubBlockK, d.Block)
	case (len(d.BlockScales) < 1) != (d.Subs == FloatSubs) || len(d.BlockScales) > 2 || len(d.Fields) < 1 ||
		len(d.Fields) > 2:
		return errors.New("a block has one or two scales, and numbers of one or two bit fields")
	case (d.Affine() || d.Codebook != nil) && d.ZeroPoint != 0 || d.Affine() && d.Codebook != nil,
		!d.Affine() && d.Codebook == nil && (bits.OnesCount(uint(d.ZeroPoint)) != 1 || d.ZeroPoint >= 1<<d.Bits()):
		return errors.New("numbers have an offset, a codebook, or a power of two within them as zero-point")
	case d.Shift != 0 && len(d.Fields) > 1:
		return errors.New("numbers that are multiples have one bit field")
	case d.Codebook != nil && d.Bits() > 4:
		return errors.New("a codebook has at most sixteen values")
	case d.Signed && d.Bits() != 8 || d.Bits() == 8 && (d.Affine() || d.Subs != NoSubs):
		return errors.New("eight bits have one scale, and only they have a sign")
	}
	if err := d.checkSubs(); err != nil {
		return err
	}
	return d.checkBytes()
}

// checkSubs returns why the scales inside a block do not fit the other fields, or nil.
func (d *Desc) checkSubs() error {
	spans := map[SubScales][]int{NoSubs: {0}, PairSubs: {0}, NibbleSubs: {16}, SignedSubs: {16, 0}, OddSubs: {16},
		ParitySubs: {0}, FloatSubs: {16}}
	switch {
	case (d.Subs == PairSubs || d.Subs == NibbleSubs) != (d.Affine() && d.Subs != NoSubs):
		return errors.New("scales in pairs or nibbles have offsets, the other ones inside a block have none")
	case (d.Subs != NoSubs) != (d.SubRaw.Get != nil):
		return errors.New("scales inside a block need a layout, and only they")
	case !slices.Contains(spans[d.Subs], d.SubK):
		return fmt.Errorf("no scales of this kind belong to %d k", d.SubK)
	case d.Unit < 0 || d.Unit != 0 && math.Float32bits(d.Unit)<<9 != 0 || d.Subs == FloatSubs && d.Unit == 0:
		return errors.New("the unit of scales is a power of two, which floats inside a block need")
	case d.Made() && (d.Codebook == nil || len(d.Fields) != 2 || d.Fields[0].Share != 0 || d.Fields[1].Bits != 1 ||
		d.Fields[1].Share != 0 && d.Subs == ParitySubs):
		return errors.New("a shared or parity bit is the second bit field of numbers that look up a codebook")
	}
	return nil
}

// checkBytes returns which part of the description lies outside the block, or nil.
func (d *Desc) checkBytes() error {
	for _, at := range d.BlockScales {
		if at < 0 || at+2 > d.Bytes && d.ScaleRaw.Get == nil {
			return fmt.Errorf("the scale at byte %d is outside the block", at)
		}
	}
	if end := d.SubRaw.At + d.SubRaw.Bytes; d.SubRaw.At < 0 || end > d.Bytes {
		return errors.New("the scales are outside the block")
	}
	for _, p := range d.Fields {
		switch {
		case p.Share != 0 && p.Share != 4:
			return fmt.Errorf("a bit that %d elements share", p.Share)
		case d.Raw != nil:
		case p.Bits != 1 && p.Bits != 2 && p.Bits != 4 && p.Bits != 8:
			return fmt.Errorf("a bit field of %d bits does not divide a byte", p.Bits)
		case p.At < 0 || p.At+d.Block*p.Bits/8 > d.Bytes:
			return fmt.Errorf("the bit field at byte %d is outside the block", p.At)
		case p.Run != 1 && p.Run != 8 && p.Run != 16 && p.Run%SubBlockK != 0 || p.Run == 1 && p.Bits > 2,
			d.Block%(p.Run*8/p.Bits) != 0:
			return fmt.Errorf("a run of %d elements does not fit a block of %d", p.Run, d.Block)
		}
	}
	return nil
}
