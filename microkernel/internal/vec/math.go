package vec

import (
	"math"

	"sandwich/microkernel/internal/ref"
)

// lanes is the number of virtual lanes of every reduction over a row: element i belongs to lane i
// mod 16 whatever the width of the vectors, so that a sum has the same bits on AVX-512, AVX2, NEON
// and in plain Go (DESIGN.md rule 6).
const lanes = 16

// treeSum adds the sixteen lanes in the one order that all targets use: lane i takes lane i+8, then
// i+4, i+2, i+1.
func treeSum(l *[lanes]float32) float32 {
	for h := lanes / 2; h > 0; h /= 2 {
		for i := 0; i < h; i++ {
			l[i] += l[i+h]
		}
	}
	return l[0]
}

// treeMax is treeSum for the maximum.
func treeMax(l *[lanes]float32) float32 {
	for h := lanes / 2; h > 0; h /= 2 {
		for i := 0; i < h; i++ {
			l[i] = maxLane(l[i], l[i+h])
		}
	}
	return l[0]
}

// maxLane is vmaxps with x as its first source: a NaN x is passed over, and of two zeros the old
// one stays.
func maxLane(old, x float32) float32 {
	if x > old {
		return x
	}
	return old
}

var negInf = float32(math.Inf(-1))

// lowestScore is what the maximum of a row's scores begins from. A block of which a row sees
// something so never looks like one that it does not see, whose maximum is -Inf: scores that are
// NaN leave a NaN in the sum of the block, those all below have a sum of zero, and neither can be
// divided by. It is far below any score of a model, and times any scale above -Inf.
const lowestScore = -0x1p100

// Constants of exp32: exp(x) = 2^n exp(r), n = round(x log2 e), |r| <= ln2/2, exp(r) = 1 + r + r^2
// q(r) with q of degree 4 through the Chebyshev nodes of that range (relative error of the
// polynomial 1.1e-8).
const (
	expLo    = -104 // below, exp rounds to zero: 2^-150 and less
	expHi    = 89   // above, exp is beyond the largest float32
	log2E    = 0x1.715476p+0
	ln2Hi    = 0x1.62e4p-1 // 16 bits, so that n*ln2Hi is exact
	ln2Lo    = 0x1.7f7d1cp-20
	expC2    = 0x1p-1
	expC3    = 0x1.5554dcp-3
	expC4    = 0x1.55551ap-5
	expC5    = 0x1.120ba2p-7
	expC6    = 0x1.6d113cp-10
	expMagic = 0x1.8p23 // adding it rounds a small float32 to an integer, ties to even
)

// exp32 is the exponential of every kernel: fixed steps, at most 2 ulp from the true value, 1 at 0,
// 0 at -Inf and below -104, denormals where they belong, +Inf on overflow and NaN for NaN.
func exp32(x float32) float32 {
	// The order of the operands is that of vminps and vmaxps with x second: NaN stays NaN.
	if expHi < x {
		x = expHi
	}
	if expLo > x {
		x = expLo
	}
	z := ref.FMA32(x, log2E, expMagic)
	n := z - expMagic
	r := ref.FMA32(-n, ln2Hi, x)
	r = ref.FMA32(-n, ln2Lo, r)
	p := ref.FMA32(expC6, r, expC5)
	p = ref.FMA32(p, r, expC4)
	p = ref.FMA32(p, r, expC3)
	p = ref.FMA32(p, r, expC2)
	p = ref.FMA32(p, r, 1)
	p = ref.FMA32(p, r, 1)
	return scaleByPow2(p, n)
}

// scaleByPow2 returns p*2^n rounded once, n an integer in [-150, 128] (or NaN, and then p is NaN).
// vscalefps does it in one instruction; elsewhere it is two products, of which the first, by half
// the exponent, is exact.
func scaleByPow2(p, n float32) float32 {
	if p != p {
		return p
	}
	k := int32(n)
	h := k >> 1
	return float32(p*pow2(h)) * pow2(k-h)
}

// pow2 is 2^k for a normal result.
func pow2(k int32) float32 { return math.Float32frombits(uint32(k+127) << 23) }
