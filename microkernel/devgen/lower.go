package devgen

import (
	"slices"

	"sandwich/microkernel/internal/arith"
)

// Soft names operations that a device does not compute exactly.
type Soft struct {
	Div  bool
	Sqrt bool
	Half bool // the conversion of float16
}

// Lower returns the kernel with the named operations replaced by sequences that are exact on every
// device: division and square root digit by digit in integers. A kernel without these operations is
// returned as it is.
func Lower(k *Kernel, soft Soft) *Kernel {
	found := false
	walk(k.Body, func(in *Instr) { found = found || soft.replaces(in.Op) })
	if !found {
		return k
	}
	copied := *k
	copied.Values, copied.Vars, copied.Body = slices.Clone(k.Values), slices.Clone(k.Vars), nil
	b := builderOf(copied)
	for v, d := range k.Values {
		if d.Const {
			b.consts[d] = Value(v)
		}
	}
	b.lower(soft, k.Body)
	return &b.k
}

func (s Soft) replaces(o Op) bool {
	return s.Div && o == OpFDiv || s.Sqrt && o == OpFSqrt || s.Half && o == OpFromHalf
}

func (b *Builder) lower(soft Soft, body []Instr) {
	for _, in := range body {
		if soft.replaces(in.Op) {
			var bits Value
			switch in.Op {
			case OpFDiv:
				bits = b.softDiv(b.Bits(in.Args[0]), b.Bits(in.Args[1]))
			case OpFSqrt:
				bits = b.softSqrt(b.Bits(in.Args[0]))
			default:
				bits = b.softHalf(in.Args[0])
			}
			b.append(Instr{Op: OpFloat, Dst: in.Dst, Args: []Value{bits}})
			continue
		}
		if in.Body != nil {
			nested := in.Body
			in.Body = b.nested(func() { b.lower(soft, nested) })
		}
		b.append(in)
	}
}

const (
	mantissa = arith.NormalBits - 1
	hidden   = arith.NormalBits
)

// normalize returns the 24 bits of a positive finite number, the leading one included, and its
// biased exponent, which is below one for subnormal numbers.
func (b *Builder) normalize(abs Value) (m, e Value) {
	small := b.Less(abs, b.U(hidden))
	n := b.Bits(b.FromInt(abs)) // exact: abs is below 2^23 if it is used
	m = b.Or(b.And(b.Select(small, n, abs), b.U(mantissa)), b.U(hidden))
	e = b.Select(small, b.Sub(b.Shr(n, b.U(23)), b.U(149)), b.Shr(abs, b.U(23)))
	return m, e
}

// softDiv returns the bits of the quotient of two float32, given their bits.
func (b *Builder) softDiv(x, y Value) Value {
	sign := b.And(b.Xor(x, y), b.U(arith.SignBit))
	x, y = b.And(x, b.U(arith.SignBit-1)), b.And(y, b.U(arith.SignBit-1))
	mx, ex := b.normalize(x)
	my, ey := b.normalize(y)
	less := b.Less(mx, my)
	mx = b.Select(less, b.Shl(mx, b.U(1)), mx)
	e := b.Add(b.Sub(ex, ey), b.Select(less, b.U(126), b.U(127)))

	// 26 bits of the quotient, which is at least 1 and below 2: 24 of the result and two more.
	q, r := b.Var(b.U(1)), b.Var(b.Sub(mx, my))
	b.Range(b.U(25), func(Value) {
		twice := b.Shl(b.Get(r), b.U(1))
		fits := b.Not(b.Less(twice, my))
		b.Set(r, b.Select(fits, b.Sub(twice, my), twice))
		b.Set(q, b.Or(b.Shl(b.Get(q), b.U(1)), b.Select(fits, b.U(1), b.U(0))))
	})
	exact := b.Equal(b.Get(r), b.U(0))
	abs := b.round(b.Or(b.Get(q), b.Select(exact, b.U(0), b.U(1))), e)

	inf := b.U(arith.InfBits)
	zeroX, zeroY := b.Equal(x, b.U(0)), b.Equal(y, b.U(0))
	infX, infY := b.Equal(x, inf), b.Equal(y, inf)
	abs = b.Select(b.OrBool(zeroX, infY), b.U(0), abs)
	abs = b.Select(b.OrBool(infX, zeroY), inf, abs)
	nan := b.OrBool(b.OrBool(b.Less(inf, x), b.Less(inf, y)), b.OrBool(b.AndBool(zeroX, zeroY), b.AndBool(infX, infY)))
	return b.Select(nan, b.U(arith.NaNBits), b.Or(sign, abs))
}

// round returns the bits of q * 2^(e-127-25), rounded to nearest even. q has 26 bits, the last of
// which is also set if bits after it were; e is signed.
func (b *Builder) round(q, e Value) Value {
	const limit = 27
	one := b.U(1)
	shift := b.Select(b.LessSigned(e, one), b.Sub(one, e), b.U(0)) // below the normal numbers
	shift = b.Min(shift, b.U(limit))
	lost := b.And(q, b.Sub(b.Shl(one, shift), one))
	q = b.Or(b.Shr(q, shift), b.Select(b.Equal(lost, b.U(0)), b.U(0), one))
	m, rest := b.Shr(q, b.U(2)), b.And(q, b.U(3))
	up := b.Less(b.U(2), b.Add(rest, b.And(m, one))) // rest 3, or 2 and an odd m
	abs := b.Add(m, b.Select(up, one, b.U(0)), b.Shl(b.Select(b.LessSigned(e, one), b.U(0), b.Sub(e, one)), b.U(23)))
	return b.Select(b.LessSigned(b.U(254), e), b.U(arith.InfBits), abs)
}

// softSqrt returns the bits of the square root of a float32, given its bits.
func (b *Builder) softSqrt(x Value) Value {
	abs := b.And(x, b.U(arith.SignBit-1))
	m, e := b.normalize(abs)
	exponent := b.Sub(e, b.U(127))
	odd := b.And(exponent, b.U(1))
	m = b.Shl(m, odd)
	exponent = b.Sar(b.Sub(exponent, odd), b.U(1))

	// 25 bits of the root of m*2^25, two bits of it at a time. It is never half-way.
	root, rest, digits := b.Var(b.U(0)), b.Var(b.U(0)), b.Var(b.Shl(m, b.U(7)))
	b.Range(b.U(25), func(Value) {
		d, s := b.Get(digits), b.Get(root)
		r := b.Or(b.Shl(b.Get(rest), b.U(2)), b.Shr(d, b.U(30)))
		t := b.Or(b.Shl(s, b.U(2)), b.U(1))
		fits := b.Not(b.Less(r, t))
		b.Set(rest, b.Select(fits, b.Sub(r, t), r))
		b.Set(root, b.Or(b.Shl(s, b.U(1)), b.Select(fits, b.U(1), b.U(0))))
		b.Set(digits, b.Shl(d, b.U(2)))
	})
	s := b.Get(root)
	result := b.Add(b.Add(b.Shr(s, b.U(1)), b.And(s, b.U(1))), b.Shl(b.Add(exponent, b.U(126)), b.U(23)))

	inf := b.U(arith.InfBits)
	same := b.OrBool(b.Equal(abs, b.U(0)), b.Equal(x, inf))
	result = b.Select(same, x, result)
	return b.Select(b.OrBool(b.Less(inf, x), b.Less(inf, abs)),
		b.Select(b.Equal(abs, b.U(0)), x, b.U(arith.NaNBits)), result)
}

// softHalf returns the bits of the float32 of a float16.
func (b *Builder) softHalf(h Value) Value {
	sign := b.Shl(b.And(h, b.U(0x8000)), b.U(16))
	e, m := b.And(h, b.U(0x7c00)), b.And(h, b.U(0x3ff))
	small := b.Bits(b.FMul(b.FromInt(m), b.F(0x1p-24)))
	normal := b.Add(b.Shl(b.And(h, b.U(0x7fff)), b.U(13)), b.U(112<<23))
	quiet := b.Select(b.Equal(m, b.U(0)), b.U(0), b.U(arith.QuietBit))
	special := b.Or(b.U(arith.InfBits), b.Or(b.Shl(m, b.U(13)), quiet))
	abs := b.Select(b.Equal(e, b.U(0)), small, b.Select(b.Equal(e, b.U(0x7c00)), special, normal))
	return b.Or(sign, abs)
}
