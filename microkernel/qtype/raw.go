package qtype

import (
	"encoding/binary"
	"sync"
)

// BitField is a field of bits of the numbers of a block as a file stores them. Runs of Run
// elements occupy as many bytes; as many runs as fit share the same bytes, the first in the lowest
// bits.
type BitField struct {
	At   int // first byte
	Bits int // 1, 2, 4 or 8
	Run  int // 1, 8, 16, or a multiple of 32

	// Share, if it is not 0, is the number of consecutive elements that have the bits in common.
	// Panels store such bits once.
	Share int
}

// RawForm reads and writes the numbers of a block that are not stored in runs of bits.
type RawForm struct {
	Get func(t *SubBlock, block []byte, n int) // sub-block n
	// the inverse, into zeros; takes the nearest numbers that the form can express
	Put func(block []byte, t *SubBlock, n int)
}

// ScaleLayout describes how a file stores the scale of a block. Panels store it as a 16-bit float.
type ScaleLayout struct {
	Float Float                    // Brain: a bfloat16; else a float16
	Get   func(p []byte) uint16    // from the byte in BlockScales on; nil: unchanged
	Put   func(p []byte, h uint16) // the inverse, into zeros
}

// SubLayout describes how a file stores the scales inside a block.
type SubLayout struct {
	At, Bytes     int
	Most          int                                  // the largest scale, or magnitude of the most negative one
	Odd, Negative bool                                 // scales are odd; may be negative
	Get           func(p []byte, sub int) (a, b uint8) // the two bytes of a sub-block, as Subs defines them
	Put           func(p []byte, sub int, s [2]uint8)  // the inverse, into zeros
}

// SubBlock is 32 elements of one row, with their scales.
type SubBlock struct {
	BlockScales [2]uint16        // of the block, as float16
	Subs        [2]uint8         // the scales of the sub-block, see SubScales
	U           [SubBlockK]uint8 // the stored numbers
}

// subBlockPool has a SubBlock to pass to a RawForm. The call goes through a function value, so a
// variable of the caller would escape to the heap, for each block of an embedding that a token
// looks up.
var subBlockPool = sync.Pool{New: func() any { return new(SubBlock) }}

const eachByte = 0x0101010101010101

// Read decodes sub-block n of a block of a file.
func (d *Desc) Read(t *SubBlock, block []byte, n int) {
	for i := range d.BlockScales {
		t.BlockScales[i] = d.rawScale(block, i)
	}
	if d.Subs != NoSubs {
		t.Subs[0], t.Subs[1] = d.SubRaw.Get(block[d.SubRaw.At:], n)
	}
	if d.Raw != nil {
		own := subBlockPool.Get().(*SubBlock)
		*own = *t
		d.Raw.Get(own, block, n)
		*t = *own
		subBlockPool.Put(own)
		return
	}
	for i := range d.Fields {
		d.Fields[i].read(t, block, n, d.Low(i), i > 0)
	}
	if d.Signed {
		t.flip()
	}
}

// rawScale returns scale n of a block of a file.
func (d *Desc) rawScale(block []byte, n int) uint16 {
	if d.ScaleRaw.Get != nil {
		return d.ScaleRaw.Get(block[d.BlockScales[n]:])
	}
	return binary.LittleEndian.Uint16(block[d.BlockScales[n]:])
}

// flip flips the sign bits: it converts between two's complement and numbers with 128 added.
func (t *SubBlock) flip() {
	for i := 0; i < SubBlockK; i += 8 {
		u := t.U[i:]
		binary.LittleEndian.PutUint64(u, binary.LittleEndian.Uint64(u)^128*eachByte)
	}
}

// Find locates the bits of element k of a block: the byte and the bit in it. Those of the elements
// after it, up to the end of the run, are at the same bit in the bytes that follow.
func (p *BitField) Find(k int) (at, shift int) {
	each, r := 8/p.Bits, k/p.Run
	return p.At + r/each*p.Run + k%p.Run, r % each * p.Bits
}

// read shifts the bits of sub-block n to bit `to` of the numbers. If keep is set, it combines them
// with the bits already there.
func (p *BitField) read(t *SubBlock, block []byte, n, to int, keep bool) {
	if p.Run == 1 {
		p.readBits(t, block, n, to, keep)
		return
	}
	mask := uint64(1<<p.Bits-1) * eachByte
	for i := 0; i < SubBlockK; i += 8 {
		at, shift := p.Find(n*SubBlockK + i)
		x := binary.LittleEndian.Uint64(block[at:]) >> shift & mask << to
		if keep {
			x |= binary.LittleEndian.Uint64(t.U[i:])
		}
		binary.LittleEndian.PutUint64(t.U[i:], x)
	}
}

// readBits is read for numbers stored side by side, eight or four in a byte.
func (p *BitField) readBits(t *SubBlock, block []byte, n, to int, keep bool) {
	for i := 0; i < SubBlockK; i += 8 {
		at := p.At + (n*SubBlockK+i)*p.Bits/8
		x := spreadBits(block[at])
		if p.Bits == 2 {
			x = uint64(binary.LittleEndian.Uint16(block[at:]))
			x = (x | x<<24) & 0x000000FF000000FF
			x = (x | x<<12) & 0x000F000F000F000F
			x = (x | x<<6) & (3 * eachByte)
		}
		x <<= to
		if keep {
			x |= binary.LittleEndian.Uint64(t.U[i:])
		}
		binary.LittleEndian.PutUint64(t.U[i:], x)
	}
}

// spreadBits returns the bits of a byte in a byte each.
func spreadBits(b uint8) uint64 {
	const diagonal, round = 0x8040201008040201, 0x7F * eachByte
	return (uint64(b)*eachByte&diagonal + round) >> 7 & eachByte
}

// Write is the inverse of Read. The block must be zero before the first call.
func (d *Desc) Write(block []byte, t SubBlock, n int) {
	if d.Signed {
		t.flip()
	}
	for i, at := range d.BlockScales {
		if d.ScaleRaw.Put != nil {
			d.ScaleRaw.Put(block[at:], t.BlockScales[i])
		} else {
			binary.LittleEndian.PutUint16(block[at:], t.BlockScales[i])
		}
	}
	if d.Subs != NoSubs {
		d.SubRaw.Put(block[d.SubRaw.At:], n, t.Subs)
	}
	if d.Raw != nil {
		d.Raw.Put(block, &t, n)
		return
	}
	for i := range d.Fields {
		d.Fields[i].write(block, &t, n, d.Low(i))
	}
}

// write combines bits from bit `low` on of the numbers of sub-block n with those of the block.
func (p *BitField) write(block []byte, t *SubBlock, n, low int) {
	mask := uint8(1<<p.Bits - 1)
	for j := 0; j < SubBlockK; {
		k := n*SubBlockK + j
		at, shift := p.Find(k)
		run := min(p.Run-k%p.Run, SubBlockK-j)
		for i, u := range t.U[j : j+run] {
			block[at+i] |= u >> low & mask << shift
		}
		j += run
	}
}

func getBytes(p []byte, n int) (a, b uint8) { return p[2*n], p[2*n+1] }
func putBytes(p []byte, n int, s [2]uint8)  { p[2*n], p[2*n+1] = s[0], s[1] }

// getSixBits reads two of sixteen 6-bit scales minus 32: low nibbles in bytes 0 to 7, first the
// low then the high ones, upper pairs of bits in bytes 8 to 11.
func getSixBits(p []byte, n int) (a, b uint8) {
	at, nibble, pair := 2*n%8, n/4*4, n/2*2
	high := p[8+at%4:][:2]
	return (p[at]>>nibble&15 | high[0]>>pair&3<<4) - 32, (p[at+1]>>nibble&15 | high[1]>>pair&3<<4) - 32
}

func putSixBits(p []byte, n int, s [2]uint8) {
	for i := range s {
		g, u := 2*n+i, s[i]+32
		p[g%8] |= u & 15 << (g / 8 * 4)
		p[8+g%4] |= u >> 4 & 3 << (g / 4 * 2)
	}
}

// getSixBitPairs reads pair j of the eight 6-bit scales and offsets: pairs 0 to 3 fill the low six
// bits of bytes 0 to 3 and 4 to 7, pairs 4 to 7 the nibbles of bytes 8 to 11 and the upper two
// bits of the others.
func getSixBitPairs(p []byte, j int) (a, b uint8) {
	if j < 4 {
		return p[j] & 63, p[j+4] & 63
	}
	return p[j+4]&15 | p[j-4]>>6<<4, p[j+4]>>4 | p[j]>>6<<4
}

func putSixBitPairs(p []byte, j int, s [2]uint8) {
	if j < 4 {
		p[j] |= s[0] & 63
		p[j+4] |= s[1] & 63
		return
	}
	p[j-4] |= s[0] >> 4 << 6
	p[j] |= s[1] >> 4 << 6
	p[j+4] |= s[0]&15 | s[1]&15<<4
}

// getSplitSix reads one of eight 6-bit scales minus 32: upper pairs of bits in bytes 0 and 1, low
// nibbles in the four bytes after them.
func getSplitSix(p []byte, n int) (a, b uint8) {
	return (p[2+n/2]>>(n%2*4)&15 | p[n/4]>>(n%4*2)&3<<4) - 32, 0
}

func putSplitSix(p []byte, n int, s [2]uint8) {
	u := s[0] + 32
	p[2+n/2] |= u & 15 << (n % 2 * 4)
	p[n/4] |= u >> 4 & 3 << (n % 4 * 2)
}
