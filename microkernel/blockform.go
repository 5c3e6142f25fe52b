package microkernel

import (
	"encoding/binary"
	"math"
)

// turnK is the elements of k that a kernel takes in one turn of its loop over a quantized panel: a block of the small types,
// an eighth of a block of the K types.
const turnK = 32

// subScales is how the scales inside a block are stored, if there are any.
type subScales uint8

const (
	noSubs     subScales = iota // value = d*(u-origin), or d*u + m where the block has two halves
	pairSubs                    // per 32 k: [16]uint8 s, [16]uint8 m; value = d*s*u - dmin*m
	nibbleSubs                  // per 16 k: [16]uint8, s in the low nibble, m in the high one; value = d*s*u - dmin*m
	signedSubs                  // per 16 k: [16]int8 s; value = d*s*(u-origin)
)

// blockForm is the inside of a packed block of a quantized type: first its halves, [16]float16 each, then for each 32 k a turn:
// the scales of the turn, then the planes of its numbers. A plane of b bits holds 32/b consecutive k of a column in one 32-bit word:
// bits b*p and up of byte i of word w of column c, at 64*w + 4*c + i, belong to k = 32/b*w + 4*p + i. Four consecutive k are thus
// bytes of one word, as integer dot products want them, whatever the bits.
type blockForm struct {
	halves int
	subs   subScales
	planes []int // bits of each piece of a number, low bits first
	origin int   // the stored number u that stands for 0, where there is no offset
	levels bool  // u is an index into levelsIQ4NL
}

var blockForms = [weightTypes]blockForm{
	Q8_0:   {halves: 1, planes: []int{8}, origin: 128},
	Q4_0:   {halves: 1, planes: []int{4}, origin: 8},
	Q4_1:   {halves: 2, planes: []int{4}},
	Q5_0:   {halves: 1, planes: []int{4, 1}, origin: 16},
	Q5_1:   {halves: 2, planes: []int{4, 1}},
	IQ4_NL: {halves: 1, planes: []int{4}, levels: true},
	Q2_K:   {halves: 2, subs: nibbleSubs, planes: []int{2}},
	Q3_K:   {halves: 1, subs: signedSubs, planes: []int{2, 1}, origin: 4},
	Q4_K:   {halves: 2, subs: pairSubs, planes: []int{4}},
	Q5_K:   {halves: 2, subs: pairSubs, planes: []int{4, 1}},
	Q6_K:   {halves: 1, subs: signedSubs, planes: []int{4, 2}, origin: 32},
}

// levelsIQ4NL are the sixteen values that an iq4_nl number stands for.
var levelsIQ4NL = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// bits of a stored number.
func (f *blockForm) bits() (n int) {
	for _, b := range f.planes {
		n += b
	}
	return n
}

// affine says that values have an offset of their own in place of a common zero.
func (f *blockForm) affine() bool { return f.halves == 2 }

// headBytes is what stands before the first turn of a block.
func (f *blockForm) headBytes() int { return 2 * PanelWidth * f.halves }

// subBytes is the scales at the front of a turn.
func (f *blockForm) subBytes() int {
	if f.subs == noSubs {
		return 0
	}
	return 2 * PanelWidth
}

// turnBytes is the length of a turn.
func (f *blockForm) turnBytes() int { return f.subBytes() + 64*f.bits() }

// place finds bits of four k, group g of a turn: where in the turn the words of the columns begin, and the bit in each byte.
func (f *blockForm) place(g, plane int) (at, bit int) {
	at = f.subBytes()
	for _, b := range f.planes[:plane] {
		at += 64 * b
	}
	bits := f.planes[plane]
	groups := 8 / bits // in one word
	return at + g/groups*64, g % groups * bits
}

// span is the consecutive k that share a scale, inside a turn.
func (f *blockForm) span() int {
	if f.subs == nibbleSubs || f.subs == signedSubs {
		return 16
	}
	return turnK
}

// blockTurn is one turn of one packed block, for plain Go.
type blockTurn struct {
	*blockForm
	head []byte
	turn []byte
}

// turnOf finds turn n of a packed block.
func turnOf(t WeightType, block []byte, n int) blockTurn {
	f := &blockForms[t]
	return blockTurn{f, block[:f.headBytes()], block[f.headBytes()+n*f.turnBytes():][:f.turnBytes()]}
}

// half is number n at the head of the block, of column c.
func (b blockTurn) half(n, c int) float32 {
	return floatFromHalf(binary.LittleEndian.Uint16(b.head[2*(PanelWidth*n+c):]))
}

// scale is the scale and the offset of column c, for element k of the turn. Both are exact.
func (b blockTurn) scale(k, c int) (scale, offset float32) {
	d := b.half(0, c)
	switch b.subs {
	case pairSubs:
		return d * float32(b.turn[c]), -(b.half(1, c) * float32(b.turn[PanelWidth+c]))
	case nibbleSubs:
		s := b.turn[k/16*PanelWidth+c]
		return d * float32(s&15), -(b.half(1, c) * float32(s>>4))
	case signedSubs:
		return d * float32(int8(b.turn[k/16*PanelWidth+c])), 0
	}
	if b.affine() {
		return d, b.half(1, c)
	}
	return d, 0
}

// stored is the number u of element k of the turn, column c.
func (b blockTurn) stored(k, c int) uint8 {
	plane := b.turn[b.subBytes():]
	u, low := uint8(0), 0
	for _, bits := range b.planes {
		each := 32 / bits
		x := plane[k/each*64+c*4+k%4] >> (k % each / 4 * bits)
		u |= x & (1<<bits - 1) << low
		low += bits
		plane = plane[64*bits:]
	}
	return u
}

// integer is the whole number that element k, column c stands for before scale and offset.
func (b blockTurn) integer(k, c int) int {
	u := b.stored(k, c)
	if b.levels {
		return int(levelsIQ4NL[u])
	}
	return int(u) - b.origin
}

// values writes the exact weights of the turn. They are computed as the generated code does it, one FMA whose operands are
// exact, so that a scale that is not finite gives NaN in both.
func (b blockTurn) values(dst []panelRow) {
	one := float32(uint32(1) << b.bits())
	for c := range PanelWidth {
		var scale, offset float32
		for k := range dst {
			if k%b.span() == 0 {
				if scale, offset = b.scale(k, c); !b.affine() {
					offset = -((one + float32(b.origin)) * scale)
				}
			}
			u := b.stored(k, c)
			switch {
			case b.levels:
				dst[k][c] = float32(levelsIQ4NL[u]) * scale
			case b.affine():
				dst[k][c] = FMA32(float32(u), scale, offset)
			default:
				dst[k][c] = FMA32(one+float32(u), scale, offset)
			}
		}
	}
}

// column writes the weights of column c of the turn as the file's own representation defines them:
// scale times number, so that a zero has the sign it has there.
func (b blockTurn) column(c int, dst *[turnK]float32) {
	u := b.numbers(c)
	origin := int32(b.origin)
	for k := 0; k < turnK; k += b.span() {
		scale, offset := b.scale(k, c)
		words, out := u[k/4:(k+b.span())/4], dst[k:k+b.span()]
		switch {
		case b.levels:
			for i := range out {
				out[i] = float32(levelsIQ4NL[words[i/4]>>(i%4*8)&15]) * scale
			}
		case b.affine(): // the product is exact: fused or not, it rounds once
			for i := range out {
				out[i] = float32(int32(words[i/4]>>(i%4*8)&255))*scale + offset
			}
		default:
			for i := range out {
				out[i] = float32(int32(words[i/4]>>(i%4*8)&255)-origin) * scale
			}
		}
	}
}

// numbers collects the stored numbers of column c, four k in a word.
func (b blockTurn) numbers(c int) (u [turnK / 4]uint32) {
	plane, low := b.turn[b.subBytes():], 0
	for _, bits := range b.planes {
		mask := uint32(1<<bits-1) * uint32(eachByte&math.MaxUint32)
		g := 0
		for w := range bits {
			word := binary.LittleEndian.Uint32(plane[64*w+4*c:])
			for shift := 0; shift < 8; shift += bits {
				u[g%len(u)] |= word >> shift & mask << low
				g++
			}
		}
		plane, low = plane[64*bits:], low+bits
	}
	return u
}
