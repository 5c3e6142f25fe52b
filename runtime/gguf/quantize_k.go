package gguf

// scaleOffset finds x ~ scale q - offset, q in 0..levels-1, for one sub-block: offset is never negative, so that zero stays representable.
func scaleOffset(src []float32, levels int) (scale, offset float32) {
	lo, hi := span(src)
	lo = min(lo, 0)
	return (max(hi, lo) - lo) / float32(levels-1), -lo
}

// offsetBlock is what the types with a scale and an offset per sub-block share: the sub-block integers, and the quants one to a byte.
type offsetBlock struct {
	scales, offsets [16]byte
	q               [256]byte
}

// quantizeOffsets quantizes 256 values in sub-blocks of sub elements. The f16 pair goes to pair[0:2], pair[2:4]; most is the largest sub-block integer.
func quantizeOffsets(pair []byte, src []float32, sub, levels, most int) (o offsetBlock) {
	var scale, offset [16]float32
	var maxScale, maxOffset float32
	n := 256 / sub
	for g := range n {
		scale[g], offset[g] = scaleOffset(src[g*sub:(g+1)*sub], levels)
		maxScale, maxOffset = max(maxScale, scale[g]), max(maxOffset, offset[g])
	}
	d := putHalf(pair, maxScale/float32(most))
	dmin := putHalf(pair[2:], maxOffset/float32(most))
	for g := range n {
		sc := nearest(scale[g]*inverse(d), 0, most)
		m := nearest(offset[g]*inverse(dmin), 0, most)
		o.scales[g], o.offsets[g] = byte(sc), byte(m)
		inv, add := inverse(float32(d*float32(sc))), float32(dmin*float32(m))
		for l := g * sub; l < (g+1)*sub; l++ {
			o.q[l] = byte(nearest((src[l]+add)*inv, 0, levels-1))
		}
	}
	return o
}

// signedScales finds x ~ d s q for sixteen sub-blocks of 16: s are integers in -most..most-1, q in -half..half-1, the extreme of each sub-block at -half.
func signedScales(d16 []byte, src []float32, half, most int) (scales [16]int, q [256]int) {
	var scale [16]float32
	for g := range scale {
		scale[g] = extreme(src[16*g:16*g+16]) / float32(-half)
	}
	d := putHalf(d16, extreme(scale[:])/float32(-most))
	for g := range scales {
		scales[g] = nearest(scale[g]*inverse(d), -most, most-1)
		inv := inverse(d * float32(scales[g]))
		for l := 16 * g; l < 16*g+16; l++ {
			q[l] = nearest(src[l]*inv, -half, half-1)
		}
	}
	return scales, q
}

func writeQ2K(b []byte, src []float32) {
	o := quantizeOffsets(b[80:84], src, 16, 4, 15)
	for g := range 16 {
		b[g] = o.scales[g] | o.offsets[g]<<4
	}
	clear(b[16:80])
	putPairs(b[16:80], o.q[:])
}

// putPairs packs two-bit quants into zeroed bytes: each 128 elements take 32 bytes, runs of 32 from the low bits up.
func putPairs(b, q []byte) {
	for l, v := range q {
		b[l/128*32+l%32] |= v & 3 << (l % 128 / 32 * 2)
	}
}

func writeQ3K(b []byte, src []float32) {
	scales, q := signedScales(b[108:110], src, 4, 32)
	clear(b[:108])
	var low [256]byte
	for l, v := range q {
		u := byte(v + 4)
		low[l] = u & 3
		b[l%32] |= u >> 2 << (l / 32)
	}
	putPairs(b[32:96], low[:])
	packed := b[96:108]
	for g, s := range scales {
		u := byte(s + 32)
		packed[g%8] |= u & 15 << (g / 8 * 4)
		packed[8+g%4] |= u >> 4 << (g / 4 * 2)
	}
}

// putScaleMin packs eight pairs of 6-bit integers into 12 zeroed bytes, the inverse of scaleMinQ4K.
func putScaleMin(p []byte, o *offsetBlock) {
	for j := range 4 {
		p[j] = o.scales[j] | o.scales[j+4]>>4<<6
		p[j+4] = o.offsets[j] | o.offsets[j+4]>>4<<6
		p[j+8] = o.scales[j+4]&15 | o.offsets[j+4]&15<<4
	}
}

// putRuns packs the low nibbles of 256 quants: runs of 32 elements, two of them to 32 bytes.
func putRuns(b []byte, q []byte) {
	for l := range 128 {
		at := l/32*64 + l%32
		b[l] = q[at]&15 | q[at+32]&15<<4
	}
}

func writeQ4K(b []byte, src []float32) {
	o := quantizeOffsets(b, src, 32, 16, 63)
	putScaleMin(b[4:16], &o)
	putRuns(b[16:144], o.q[:])
}

func writeQ5K(b []byte, src []float32) {
	o := quantizeOffsets(b, src, 32, 32, 63)
	putScaleMin(b[4:16], &o)
	high := b[16:48]
	clear(high)
	for l, v := range o.q {
		high[l%32] |= v >> 4 << (l / 32)
	}
	putRuns(b[48:176], o.q[:])
}

func writeQ6K(b []byte, src []float32) {
	scales, q := signedScales(b[208:210], src, 32, 128)
	clear(b[:192])
	low, high := b[:128], b[128:192]
	for l, v := range q {
		u := byte(v + 32)
		half, run := l/128, l%128/32
		low[half*64+l%64] |= u & 15 << (run / 2 * 4)
		high[half*32+l%32] |= u >> 4 << (run * 2)
	}
	for g, s := range scales {
		b[192+g] = byte(int8(s))
	}
}
