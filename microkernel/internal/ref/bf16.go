package ref

import (
	"math"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// RoundBF16 returns the bits of the bfloat16 nearest to x, ties to even. Subnormal numbers become
// zeros, as the dot products read them; a NaN becomes quiet.
func RoundBF16(x float32) uint16 {
	bits := math.Float32bits(x)
	switch {
	case x != x:
		return uint16(bits>>16) | 0x40
	case bits&0x7F800000 == 0:
		return uint16(bits>>16) & 0x8000
	}
	return uint16((bits + 0x7FFF + bits>>16&1) >> 16)
}

// FromBF16 returns a bfloat16 as a dot product reads it: subnormal ones as zeros.
func FromBF16(b uint16) float32 { return flush32(math.Float32frombits(uint32(b) << 16)) }

// bf16Pair returns the two bfloat16 of a word as float32, subnormal ones as zeros.
func bf16Pair(w uint32) [2]float32 {
	return [2]float32{flush32(math.Float32frombits(w << 16)), flush32(math.Float32frombits(w &^ 0xFFFF))}
}

// flush32 returns x, or the zero of its sign if it is subnormal.
func flush32(x float32) float32 {
	if math.Float32bits(x)&0x7F800000 == 0 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// refPairs continues the chains of one panel over the pairs of [K0, K1). odd selects their
// rounding, see kernel.Dot.
func refPairs(odd bool, g *kernel.GemmArgs, panel, c unsafe.Pointer, columns int) {
	add := DotPairX86
	if odd {
		add = dotPairArm
	}
	for k := g.K0; k < g.K1; k += 2 {
		words := unsafe.Slice((*uint32)(unsafe.Add(panel, qtype.BF16.PanelOffset(k))), qtype.PanelWidth)
		for m := range g.M {
			a := bf16Pair(*(*uint32)(unsafe.Add(g.A, m*g.AStride+kernel.ActBF16RowBytes(k))))
			acc := unsafe.Slice((*float32)(unsafe.Add(c, m*g.CStride)), columns)
			for j := range acc {
				acc[j] = add(a, bf16Pair(words[j]), acc[j])
			}
		}
	}
}

// DotPairX86 computes a lane of VDPBF16PS.
func DotPairX86(a, w [2]float32, sum float32) float32 {
	return FMAFlush(a[0], w[0], FMAFlush(a[1], w[1], flush32(sum)))
}

// FMAFlush returns a*b + c rounded to nearest even, or a zero if the exact result is below the
// normal numbers. The exact result decides: FMA32 may have rounded it up to the smallest normal
// number.
func FMAFlush(a, b, c float32) float32 {
	const minimum, margin = 0x1p-126, 0x1p24
	r := FMA32(a, b, c)
	if abs32(r) == minimum {
		if abs32(a) > abs32(b) {
			a, b = b, a
		}
		if abs32(FMA32(a*margin, b, c*margin)) < minimum*margin {
			return float32(math.Copysign(0, float64(r)))
		}
	}
	return flush32(r)
}

// AddFlush returns the sum of a dot product: rounded to nearest even, subnormal numbers as zeros.
func AddFlush(a, b float32) float32 { return flush32(flush32(a) + flush32(b)) }
func abs32(x float32) float32       { return float32(math.Abs(float64(x))) }

// dotPairArm computes a lane of BFDOT, and half of a lane of BFMMLA.
func dotPairArm(a, w [2]float32, sum float32) float32 {
	return addOdd(sum, addOdd(mulOdd(a[0], w[0]), mulOdd(a[1], w[1])))
}

// mulOdd returns a product of two bfloat16, which float32 represents exactly.
func mulOdd(a, b float32) float32 { return narrowOdd(float64(a) * float64(b)) }

// addOdd returns a sum rounded to odd.
func addOdd(a, b float32) float32 {
	x, y := float64(flush32(a)), float64(flush32(b))
	s := x + y
	return narrowOdd(roundOdd(x, y, s))
}

// defaultNaN is the NaN of Arm's arithmetic where payloads do not propagate.
var defaultNaN = math.Float32frombits(0x7FC00000)

// narrowOdd rounds to float32 to odd; values beyond the range become infinity, those below the
// normal numbers zero.
func narrowOdd(x float64) float32 {
	const lost = 1<<29 - 1
	switch abs := math.Abs(x); {
	case x != x:
		return defaultNaN
	case abs < 0x1p-126:
		return float32(math.Copysign(0, x))
	case abs >= 0x1p128:
		return float32(math.Inf(int(math.Copysign(1, x))))
	}
	bits := math.Float64bits(x)
	if bits&lost != 0 {
		bits = bits&^lost | 1<<29
	}
	return float32(math.Float64frombits(bits))
}
