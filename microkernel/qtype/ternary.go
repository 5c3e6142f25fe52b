package qtype

import "encoding/binary"

// powers3 are the powers of three by which tq1_0 shifts its digits.
var powers3 = [5]byte{1, 3, 9, 27, 81}

// digitPlace locates element k of a tq1_0 block: a byte and which of its digits. Of 52 bytes the
// first 32 store 160 elements, sixteen 80 and the last four 16, all in runs of that length.
func digitPlace(k int) (at, digit int) {
	switch {
	case k < 160:
		return k % 32, k / 32
	case k < 240:
		return 32 + k%16, (k - 160) / 16
	}
	return 48 + k%4, (k - 240) / 4
}

// digits3 returns one digit of eight bytes. Every second byte has sixteen bits for its product.
func digits3(x uint64, digit int) uint64 {
	const lanes = 0x00FF00FF00FF00FF
	power := uint64(powers3[digit])
	even, odd := x&lanes*power&lanes*3, x>>8&lanes*power&lanes*3
	return even>>8&lanes | odd&^lanes
}

// tq1Form reads digits of base three. A byte divided by 256 is a fraction that has these digits in
// base three. Multiplying the byte by a power of three, without the carry, moves a digit to the
// front; the next multiplication by three carries it out.
var tq1Form = &RawForm{
	Get: func(t *SubBlock, block []byte, n int) {
		for i := 0; i < SubBlockK; i += 8 {
			at, digit := digitPlace(n*SubBlockK + i)
			if at < 48 {
				x := binary.LittleEndian.Uint64(block[at:])
				binary.LittleEndian.PutUint64(t.U[i:], digits3(x, digit))
				continue
			}
			x := uint64(binary.LittleEndian.Uint32(block[at:]))
			binary.LittleEndian.PutUint64(t.U[i:], digits3(x, digit)|digits3(x, digit+1)<<32)
		}
	},
	// Put collects the digits as numbers first, and makes them fractions when all are there.
	Put: func(block []byte, t *SubBlock, n int) {
		for i, u := range t.U {
			at, digit := digitPlace(n*SubBlockK + i)
			block[at] += min(u, 2) * powers3[4-digit]
		}
		if n == 7 {
			for at := range 52 {
				block[at] = byte((int(block[at])*256 + 242) / 243)
			}
		}
	},
}
