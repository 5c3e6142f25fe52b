package gguf

// The K types: 256 elements to a block, cut into sub-blocks whose own scales are small integers times one f16 per block.

// readQ2K: 16 bytes of (scale | offset<<4), one to 16 elements; 64 bytes of quants; f16 d, f16 dmin. x = d scale q - dmin offset.
// Each 128 elements take 32 bytes of quants, two bits at a time from the low end.
func readQ2K(dst []float32, b []byte) {
	scales, qs, d, dmin := b[:16], b[16:80], half(b[80:]), half(b[82:])
	for g, sc := range scales { // g-th run of 16 elements
		dl, ml := d*float32(sc&15), dmin*float32(sc>>4)
		q := qs[g/8*32+g%2*16:][:16]
		shift := g % 8 / 2 * 2
		out := dst[16*g:][:16]
		for l := range out {
			out[l] = dl*float32(q[l]>>shift&3) - ml
		}
	}
}

// readQ3K: 32 bytes of third bits, 64 bytes of low bit pairs (laid out as in q2_k), 12 bytes of 6-bit scales, f16 d.
// x = d (scale-32) (q - 4), where the third bit stands for 4.
func readQ3K(dst []float32, b []byte) {
	high, qs, packed, d := b[:32], b[32:96], b[96:108], half(b[108:])
	for g := range 16 {
		dl := d * float32(scaleQ3K(packed, g)-32)
		q, h := qs[g/8*32+g%2*16:][:16], high[g%2*16:][:16]
		shift, bit := g%8/2*2, g/2
		out := dst[16*g:][:16]
		for l := range out {
			out[l] = dl * float32(int(q[l]>>shift&3)+int(h[l]>>bit&1)*4-4)
		}
	}
}

// scaleQ3K unpacks the g-th of sixteen 6-bit scales: low nibbles in bytes 0..7 (first the low, then the high halves), upper bit pairs in bytes 8..11.
func scaleQ3K(packed []byte, g int) int {
	low := packed[g%8] >> (g / 8 * 4) & 15
	return int(low | packed[8+g%4]>>(g/4*2)&3<<4)
}

// scaleMinQ4K unpacks the j-th of eight pairs of 6-bit scale and 6-bit offset from 12 bytes: pairs 0..3 fill the low six bits of bytes
// 0..3 and 4..7, pairs 4..7 the nibbles of bytes 8..11 and the upper two bits of bytes 0..7.
func scaleMinQ4K(p []byte, j int) (scale, offset byte) {
	if j < 4 {
		return p[j] & 63, p[j+4] & 63
	}
	return p[j+4]&15 | p[j-4]>>6<<4, p[j+4]>>4 | p[j]>>6<<4
}

// readQ4K: f16 d, f16 dmin, 12 bytes of scales and offsets (one pair to 32 elements), 128 bytes of quants. x = d scale q - dmin offset.
// Each 64 elements take 32 bytes: the first half the low, the second half the high nibbles.
func readQ4K(dst []float32, b []byte) {
	d, dmin, packed, qs := half(b), half(b[2:]), b[4:16], b[16:144]
	for j := range 8 {
		sc, m := scaleMinQ4K(packed, j)
		dl, ml := d*float32(sc), dmin*float32(m)
		q, shift := qs[j/2*32:][:32], j%2*4
		out := dst[32*j:][:32]
		for l := range out {
			out[l] = dl*float32(q[l]>>shift&15) - ml
		}
	}
}

// readQ5K: as q4_k with a fifth bit: 32 bytes stand between scales and quants, whose bit j belongs to the j-th run of 32 elements.
func readQ5K(dst []float32, b []byte) {
	d, dmin, packed, high, qs := half(b), half(b[2:]), b[4:16], b[16:48], b[48:176]
	for j := range 8 {
		sc, m := scaleMinQ4K(packed, j)
		dl, ml := d*float32(sc), dmin*float32(m)
		q, shift := qs[j/2*32:][:32], j%2*4
		out := dst[32*j:][:32]
		for l := range out {
			out[l] = dl*float32(q[l]>>shift&15|high[l]>>j&1<<4) - ml
		}
	}
}

// readQ6K: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 signed scales (one to 16 elements), f16 d. x = d scale (q - 32).
// Each 128 elements take 64 bytes of nibbles (elements 0..63 low, 64..127 high) and 32 bytes of bit pairs (run of 32 by run of 32).
func readQ6K(dst []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for g := range 16 {
		dl := d * float32(int8(scales[g]))
		run := g % 8 // of 16 elements, inside the half block
		q, shift := low[g/8*64+run%4*16:][:16], run/4*4
		h, hshift := high[g/8*32+run%2*16:][:16], run/2*2
		out := dst[16*g:][:16]
		for l := range out {
			out[l] = dl * float32(int(q[l]>>shift&15|h[l]>>hshift&3<<4)-32)
		}
	}
}
