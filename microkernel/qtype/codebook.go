package qtype

import "encoding/binary"

// The values of the digits of the codebook types, in units: with their sign, or moved up and down
// by an eighth. Digits of two bits have a bit above them for that, and one that is not used.
var (
	values2 = [16]int8{8, 25, 43, 43, -8, -25, -43, -43}
	values3 = [16]int8{4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62}
	odds3   = [16]int8{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15}
	values1 = [16]int8{-7, 1, 9, 9, -9, -1, 7, 7}
)

var (
	words2xxs = newGrid(3, 8, gridIQ2XXS)
	words2xs  = newGrid(3, 8, gridIQ2XS)
	words2s   = newGrid(3, 8, gridIQ2S)
	words1    = newGrid(3, 8, gridIQ1)
	words3xxs = newGrid(8, 4, gridIQ3XXS)
	words3s   = newGrid(8, 4, gridIQ3S)
)

// get16 and or16 read and write a 16-bit word of a block.
func get16(b []byte) int           { return int(binary.LittleEndian.Uint16(b)) }
func or16(b []byte, x int)         { b[0], b[1] = b[0]|byte(x), b[1]|byte(x>>8) }
func or32(b []byte, x uint32)      { or16(b, int(x&0xFFFF)); or16(b[2:], int(x>>16)) }
func odd(s uint8) uint8            { return s<<1 | 1 }
func nibbleOf(b byte, n int) uint8 { return b >> (4 * n) & 15 }

// iq2XXS describes blocks of 32 elements with four words, each numbered by a byte, followed by 32
// bits of four groups of seven signs and four bits of a scale.
var iq2XXS = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		b := block[2+8*n:]
		signs := binary.LittleEndian.Uint32(b[4:])
		for l := range 4 {
			words2xxs.get(t.U[8*l:], int(b[l]), eighth(uint8(signs>>(7*l))))
		}
	},
	Put: func(block []byte, t *SubBlock, n int) {
		b := block[2+8*n:]
		signs := uint32(0)
		for l := range 4 {
			b[l] = byte(words2xxs.find(mags(t.U[8*l:], 3)))
			signs |= uint32(evenSigns(t.U[8*l:], 2)&127) << (7 * l)
		}
		or32(b[4:], signs)
	},
}

// mags returns the digits of eight numbers without the bit above them.
func mags(u []uint8, mask uint8) []uint8 {
	var out [8]uint8
	for i := range out {
		out[i] = u[i] & mask
	}
	return out[:]
}

// scaleOfTop describes the scale in the upper four bits of the last of each `bytes` bytes.
func scaleOfTop(at, bytes, each int) SubLayout {
	return SubLayout{At: at, Bytes: bytes, Most: 31, Odd: true,
		Get: func(p []byte, n int) (a, b uint8) { return odd(p[each*n+each-1] >> 4), 0 },
		Put: func(p []byte, n int, s [2]uint8) { p[each*n+each-1] |= s[0] >> 1 << 4 }}
}

// nibblePairs describes two scales of sixteen elements each in every byte.
func nibblePairs(at int) SubLayout {
	return SubLayout{At: at, Bytes: 8, Most: 31, Odd: true,
		Get: func(p []byte, n int) (a, b uint8) { return odd(p[n] & 15), odd(p[n] >> 4) },
		Put: func(p []byte, n int, s [2]uint8) { p[n] |= s[0]>>1 | s[1]>>1<<4 }}
}

// nibbleScales describes one scale of 32 elements in every four bits.
func nibbleScales(at int) SubLayout {
	return SubLayout{At: at, Bytes: 4, Most: 31, Odd: true,
		Get: func(p []byte, n int) (a, b uint8) { return odd(nibbleOf(p[n/2], n%2)), 0 },
		Put: func(p []byte, n int, s [2]uint8) { p[n/2] |= s[0] >> 1 << (n % 2 * 4) }}
}

// iq2XS describes nine bits of a word's number and seven signs for eight elements.
var iq2XS = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		for l := range 4 {
			q := get16(block[2+8*n+2*l:])
			words2xs.get(t.U[8*l:], q&511, eighth(uint8(q>>9)))
		}
	},
	Put: func(block []byte, t *SubBlock, n int) {
		for l := range 4 {
			u := t.U[8*l:]
			or16(block[2+8*n+2*l:], words2xs.find(mags(u, 3))|int(evenSigns(u, 2)&127)<<9)
		}
	},
}

// iq2S describes ten bits of a word's number, two of them stored separately, and eight signs.
var iq2S = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		for l := range 4 {
			word := int(block[2+4*n+l]) | int(block[66+n])>>(2*l)&3<<8
			words2s.get(t.U[8*l:], word, block[34+4*n+l])
		}
	},
	Put: func(block []byte, t *SubBlock, n int) {
		for l := range 4 {
			u := t.U[8*l:]
			word := words2s.find(mags(u, 3))
			block[2+4*n+l] = byte(word)
			block[66+n] |= byte(word >> 8 << (2 * l))
			block[34+4*n+l] = signsOf(u, 2)
		}
	},
}

// iq3XXS describes eight bits for the word of four elements; signs and scales follow in 32-bit
// words after all of them.
var iq3XXS = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		signs := binary.LittleEndian.Uint32(block[66+4*n:])
		for l := range 4 {
			b := block[2+8*n+2*l:]
			words3xxs.get2(t.U[8*l:], int(b[0]), int(b[1]), eighth(uint8(signs>>(7*l))))
		}
	},
	Put: func(block []byte, t *SubBlock, n int) {
		signs := uint32(0)
		for l := range 8 {
			block[2+8*n+l] = byte(words3xxs.find(t.U[4*l:]))
			if l%2 == 0 {
				signs |= uint32(evenSigns(t.U[4*l:], 3)&127) << (7 * (l / 2))
			}
		}
		or32(block[66+4*n:], signs)
	},
}

// iq3S describes nine bits for the word of four elements, one of them stored separately, and eight
// signs.
var iq3S = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		for l := range 4 {
			b, high := block[2+8*n+2*l:], int(block[66+n])>>(2*l)
			words3s.get2(t.U[8*l:], int(b[0])|high&1<<8, int(b[1])|high&2<<7, block[74+4*n+l])
		}
	},
	Put: func(block []byte, t *SubBlock, n int) {
		for l := range 8 {
			word := words3s.find(t.U[4*l:])
			block[2+8*n+l] = byte(word)
			block[66+n] |= byte(word >> 8 << l)
			if l%2 == 0 {
				block[74+4*n+l/2] = signsOf(t.U[4*l:], 3)
			}
		}
	},
}

// iq1S describes eleven bits for a word of eight digits, and per 32 elements, in the upper bits of
// the same 16-bit words, a scale and the direction in which all digits are moved. Digits that are
// moved down equal digits that are moved up with the opposite sign, so they are mirrored and the
// scale is negative.
var iq1S = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		high := get16(block[34+2*n:])
		for l := range 4 {
			u := t.U[8*l:]
			words1.get(u, int(block[2+4*n+l])|high>>(3*l)&7<<8, 0)
			if high>>15 != 0 { // mirrored
				binary.LittleEndian.PutUint64(u, 2*eachByte-binary.LittleEndian.Uint64(u))
			}
		}
	},
	Put: func(block []byte, t *SubBlock, n int) {
		u := t.U
		for i := range u {
			if int8(t.Subs[0]) < 0 {
				u[i] = 2 - min(2, u[i])
			}
		}
		for l := range 4 {
			word := words1.find(u[8*l:])
			block[2+4*n+l] = byte(word)
			or16(block[34+2*n:], word>>8<<(3*l))
		}
	},
}

var iq1Scales = SubLayout{At: 34, Bytes: 16, Most: 15, Odd: true, Negative: true,
	Get: func(p []byte, n int) (a, b uint8) {
		s := uint8(get16(p[2*n:])>>12&7<<1 | 1)
		if p[2*n+1]&128 != 0 {
			s = -s
		}
		return s, 0
	},
	Put: func(p []byte, n int, s [2]uint8) {
		if x := int8(s[0]); x < 0 {
			or16(p[2*n:], 1<<15|int(-x)>>1<<12)
		} else {
			or16(p[2*n:], int(x)>>1<<12)
		}
	}}

// iq1M is like iq1S, except that eight elements are moved together (the direction is the bit above
// their digits) and sixteen share a scale.
var iq1M = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		for l := range 4 {
			high := nibbleOf(block[32+2*n+l/2], l%2)
			words1.get(t.U[8*l:], int(block[4*n+l])|int(high&7)<<8, -(high >> 3))
		}
	},
	Put: func(block []byte, t *SubBlock, n int) {
		for l := range 4 {
			u := t.U[8*l:]
			word := words1.find(mags(u, 3))
			block[4*n+l] = byte(word)
			block[32+2*n+l/2] |= byte(word>>8|int(u[0]>>2)<<3) << (l % 2 * 4)
		}
	},
}

// iq1MScales describes three bits of scale for sixteen elements, twelve bits in each of four
// words.
var iq1MScales = SubLayout{At: 48, Bytes: 8, Most: 15, Odd: true,
	Get: func(p []byte, n int) (a, b uint8) {
		s := get16(p[n/2*2:]) >> (n % 2 * 6)
		return odd(uint8(s & 7)), odd(uint8(s >> 3 & 7))
	},
	Put: func(p []byte, n int, s [2]uint8) {
		or16(p[n/2*2:], (int(s[0])>>1|int(s[1])>>1<<3)<<(n%2*6))
	}}

// iq1MHalf describes the float16 in the upper four bits of these words.
var iq1MHalf = ScaleLayout{
	Get: func(p []byte) (h uint16) {
		for i := range 4 {
			h |= uint16(p[2*i+1]>>4) << (4 * i)
		}
		return h
	},
	Put: func(p []byte, h uint16) {
		for i := range 4 {
			p[2*i+1] |= byte(h >> (4 * i) & 15 << 4)
		}
	}}
