package microkernel

import (
	"encoding/binary"

	"sandwich/microkernel/qtype"
)

// rawForm is the definition of a quantized type in a GGUF row, element by element: the oracle of
// the packers.
type rawForm struct {
	halves []int // where float16 numbers stand
	value  func(b []byte, k int) float32
}

func rawHalf(b []byte, at int) float32 {
	return qtype.FloatFromHalf(binary.LittleEndian.Uint16(b[at:]))
}

// rawNibble is element k of 16 bytes that hold 32 numbers, k and k+16 in one byte.
func rawNibble(b []byte, k int) int { return int(b[k%16] >> (k / 16 * 4) & 15) }
func rawBit(b []byte, k int) int    { return int(b[k/8] >> (k % 8) & 1) }

var rawForms = map[WeightType]rawForm{
	Q8_0: {[]int{0}, func(b []byte, k int) float32 { return rawHalf(b, 0) * float32(int8(b[2+k])) }},
	Q4_0: {[]int{0}, func(b []byte, k int) float32 { return rawHalf(b, 0) * float32(rawNibble(b[2:], k)-8) }},
	Q4_1: {[]int{0, 2}, func(b []byte, k int) float32 {
		return rawHalf(b, 0)*float32(rawNibble(b[4:], k)) +
			rawHalf(b, 2)
	}},
	Q5_0: {[]int{0}, func(b []byte, k int) float32 {
		return rawHalf(b, 0) * float32(rawNibble(b[6:], k)+16*rawBit(b[2:], k)-16)
	}},
	Q5_1: {[]int{0, 2}, func(b []byte, k int) float32 {
		return rawHalf(b, 0)*float32(rawNibble(b[8:], k)+16*rawBit(b[4:], k)) + rawHalf(b, 2)
	}},
	IQ4_NL: {[]int{0}, func(b []byte, k int) float32 {
		return rawHalf(b, 0) * []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89,
			113}[rawNibble(b[2:], k)]
	}},
	Q2_K: {[]int{80, 82}, func(b []byte, k int) float32 {
		q := b[16+k/128*32+k%32] >> (k % 128 / 32 * 2) & 3
		s := b[k/16]
		return rawHalf(b, 80)*float32(s&15)*float32(q) - rawHalf(b, 82)*float32(s>>4)
	}},
	Q3_K: {[]int{108}, func(b []byte, k int) float32 {
		q := int(b[32+k/128*32+k%32]>>(k%128/32*2)&3) + int(b[k%32]>>(k/32)&1)*4
		g := k / 16
		s := int(b[96+g%8]>>(g/8*4)&15) + int(b[104+g%4]>>(g/4*2)&3)*16
		return rawHalf(b, 108) * float32(s-32) * float32(q-4)
	}},
	Q4_K: {[]int{0, 2}, func(b []byte, k int) float32 {
		q := b[16+k/64*32+k%32] >> (k % 64 / 32 * 4) & 15
		s, m := rawScalesQ4K(b[4:], k/32)
		return rawHalf(b, 0)*s*float32(q) - rawHalf(b, 2)*m
	}},
	Q5_K: {[]int{0, 2}, func(b []byte, k int) float32 {
		q := b[48+k/64*32+k%32]>>(k%64/32*4)&15 + b[16+k%32]>>(k/32)&1*16
		s, m := rawScalesQ4K(b[4:], k/32)
		return rawHalf(b, 0)*s*float32(q) - rawHalf(b, 2)*m
	}},
	Q6_K: {[]int{208}, func(b []byte, k int) float32 {
		q := int(b[k/128*64+k%64]>>(k%128/64*4)&15) + int(b[128+k/128*32+k%32]>>(k%128/32*2)&3)*16
		return rawHalf(b, 208) * float32(int8(b[192+k/16])) * float32(q-32)
	}},
}

func rawScalesQ4K(p []byte, j int) (scale, offset float32) {
	if j < 4 {
		return float32(p[j] & 63), float32(p[j+4] & 63)
	}
	return float32(p[j+4]&15 + p[j-4]>>6*16), float32(p[j+4]>>4 + p[j]>>6*16)
}
