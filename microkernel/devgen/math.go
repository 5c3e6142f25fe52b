package devgen

import "sandwich/microkernel/internal/arith"

// IsNaN reports whether x is NaN.
func (b *Builder) IsNaN(x Value) Value {
	return b.Less(b.U(arith.InfBits), b.And(b.Bits(x), b.U(arith.SignBit-1)))
}

// FMax returns x if it is larger than old, else old: a NaN x is ignored, and of two zeros the old
// one stays.
func (b *Builder) FMax(old, x Value) Value { return b.Select(b.FLess(old, x), x, old) }

// RoundToInt returns the signed integer nearest to x, ties to even, of a magnitude below 2^22.
func (b *Builder) RoundToInt(x Value) Value {
	magic := b.F(arith.ExpMagic)
	return b.Sub(b.Bits(b.FAdd(x, magic)), b.Bits(magic))
}

// Exp returns the exponential of every kernel on the CPU, with the same bits.
func (b *Builder) Exp(x Value) Value {
	hi, lo, magic := b.F(arith.ExpHi), b.F(arith.ExpLo), b.F(arith.ExpMagic)
	x = b.Select(b.FLess(hi, x), hi, x) // NaN stays NaN
	x = b.Select(b.FLess(x, lo), lo, x)
	z := b.FMA(x, b.F(arith.Log2E), magic)
	n := b.FSub(z, magic)
	minus := b.FNeg(n)
	r := b.FMA(minus, b.F(arith.Ln2Hi), x)
	r = b.FMA(minus, b.F(arith.Ln2Lo), r)
	p := b.F(arith.ExpC6)
	for _, c := range []float32{arith.ExpC5, arith.ExpC4, arith.ExpC3, arith.ExpC2, 1, 1} {
		p = b.FMA(p, r, b.F(c))
	}
	// p*2^k by two products, of which the first, by half the exponent, is exact. If p is NaN, k is
	// arbitrary and the result NaN.
	k := b.Sub(b.Bits(z), b.Bits(magic))
	half := b.Sar(k, b.U(1))
	scaled := b.FMul(b.FMul(p, b.power(half)), b.power(b.Sub(k, half)))
	return b.Select(b.IsNaN(p), p, scaled)
}

// power returns 2^k, which must be a normal number.
func (b *Builder) power(k Value) Value { return b.Float(b.Shl(b.Add(k, b.U(127)), b.U(23))) }

// FloatFromHalf returns a float16, in the low bits of h without bits above it, as a float32.
func (b *Builder) FloatFromHalf(h Value) Value { return b.op(OpFromHalf, h) }

// HalfFromFloat returns x rounded to float16, ties to even, in the low bits of a word. Overflow
// gives infinity, a NaN stays a quiet NaN with the upper bits of its payload.
func (b *Builder) HalfFromFloat(x Value) Value {
	bits := b.Bits(x)
	sign := b.And(b.Shr(bits, b.U(16)), b.U(0x8000))
	a := b.And(bits, b.U(arith.SignBit-1))
	nan := b.Or(b.U(0x7e00), b.And(b.Shr(a, b.U(13)), b.U(0x3ff)))
	// The sum leaves the rounded integer in the low bits.
	small := b.Sub(b.Bits(b.FAdd(b.Float(a), b.F(0.5))), b.Bits(b.F(0.5)))
	even := b.Add(a, b.Add(b.U(0xfff), b.And(b.Shr(a, b.U(13)), b.U(1))))
	normal := b.Shr(b.Sub(even, b.U(112<<23)), b.U(13))
	r := b.Select(b.Less(a, b.U(0x38800000)), small, normal)
	r = b.Select(b.Less(a, b.U(0x477ff000)), r, b.U(0x7c00))
	r = b.Select(b.Less(b.U(arith.InfBits), a), nan, r)
	return b.Or(sign, r)
}
