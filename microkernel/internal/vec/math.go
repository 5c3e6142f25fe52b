package vec

import (
	"math"

	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/ref"
)

// lanes is the number of virtual lanes of a reduction; see package arith.
const lanes = arith.Lanes

// treeSum adds the sixteen lanes in the order that all targets use: lane i takes lane i+8, then
// i+4, i+2, i+1.
func treeSum(l *[lanes]float32) float32 {
	for h := lanes / 2; h > 0; h /= 2 {
		for i := 0; i < h; i++ {
			l[i] += l[i+h]
		}
	}
	return l[0]
}

// treeMax returns treeSum for the maximum.
func treeMax(l *[lanes]float32) float32 {
	for h := lanes / 2; h > 0; h /= 2 {
		for i := 0; i < h; i++ {
			l[i] = maxLane(l[i], l[i+h])
		}
	}
	return l[0]
}

// maxLane is VMAXPS with x as the first source: a NaN x is ignored, and of two zeros the old one
// stays.
func maxLane(old, x float32) float32 {
	if x > old {
		return x
	}
	return old
}

var negInf = float32(math.Inf(-1))

// exp32 is the exponential of every kernel: fixed steps, at most 2 ulp from the true value, 1 at
// 0, 0 at -Inf and below -104, denormals for small results, +Inf on overflow and NaN for NaN.
func exp32(x float32) float32 {
	// The order of the operands is that of vminps and vmaxps with x second: NaN stays NaN.
	if arith.ExpHi < x {
		x = arith.ExpHi
	}
	if arith.ExpLo > x {
		x = arith.ExpLo
	}
	z := ref.FMA32(x, arith.Log2E, arith.ExpMagic)
	n := z - arith.ExpMagic
	r := ref.FMA32(-n, arith.Ln2Hi, x)
	r = ref.FMA32(-n, arith.Ln2Lo, r)
	p := ref.FMA32(arith.ExpC6, r, arith.ExpC5)
	p = ref.FMA32(p, r, arith.ExpC4)
	p = ref.FMA32(p, r, arith.ExpC3)
	p = ref.FMA32(p, r, arith.ExpC2)
	p = ref.FMA32(p, r, 1)
	p = ref.FMA32(p, r, 1)
	return scaleByPow2(p, n)
}

// scaleByPow2 returns p*2^n rounded once, n an integer in [-150, 128] (or NaN, if p is NaN).
// VSCALEFPS is one instruction; elsewhere it is two products, of which the first, by half the
// exponent, is exact.
func scaleByPow2(p, n float32) float32 {
	if p != p {
		return p
	}
	k := int32(n)
	h := k >> 1
	return float32(p*pow2(h)) * pow2(k-h)
}

// pow2 returns 2^k, which must be a normal number.
func pow2(k int32) float32 { return math.Float32frombits(uint32(k+127) << 23) }
