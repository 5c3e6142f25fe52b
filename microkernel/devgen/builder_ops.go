package devgen

// Integer operations. They wrap.

// Add returns the sum of its operands.
func (b *Builder) Add(x, y Value, more ...Value) Value {
	s := b.op(OpAdd, x, y)
	for _, z := range more {
		s = b.op(OpAdd, s, z)
	}
	return s
}

// Sub returns x - y.
func (b *Builder) Sub(x, y Value) Value { return b.op(OpSub, x, y) }

// Mul returns x*y.
func (b *Builder) Mul(x, y Value) Value { return b.op(OpMul, x, y) }

// Div returns x/y, unsigned.
func (b *Builder) Div(x, y Value) Value { return b.op(OpDiv, x, y) }

// Rem returns x%y, unsigned.
func (b *Builder) Rem(x, y Value) Value { return b.op(OpRem, x, y) }

// And returns x&y.
func (b *Builder) And(x, y Value) Value { return b.op(OpAnd, x, y) }

// Or returns x|y.
func (b *Builder) Or(x, y Value) Value { return b.op(OpOr, x, y) }

// Xor returns x^y.
func (b *Builder) Xor(x, y Value) Value { return b.op(OpXor, x, y) }

// Shl returns x<<n.
func (b *Builder) Shl(x, n Value) Value { return b.op(OpShl, x, n) }

// Shr returns x>>n, unsigned.
func (b *Builder) Shr(x, n Value) Value { return b.op(OpShr, x, n) }

// Sar returns x>>n of a signed x.
func (b *Builder) Sar(x, n Value) Value { return b.op(OpSar, x, n) }

// MulAdd returns x*y + z.
func (b *Builder) MulAdd(x, y, z Value) Value { return b.Add(b.Mul(x, y), z) }

// Field returns the given number of bits of x from bit `at` on, without sign.
func (b *Builder) Field(x Value, at, bits int) Value {
	return b.And(b.Shr(x, b.U(at)), b.U(1<<bits-1))
}

// SignedByte returns the byte of x that begins at bit `at`, a multiple of 8, with its sign.
func (b *Builder) SignedByte(x, at Value) Value {
	return b.Sar(b.Shl(x, b.Sub(b.U(24), at)), b.U(24))
}

// Min returns the smaller of two unsigned numbers.
func (b *Builder) Min(x, y Value) Value { return b.Select(b.Less(x, y), x, y) }

// Max returns the larger of two unsigned numbers.
func (b *Builder) Max(x, y Value) Value { return b.Select(b.Less(x, y), y, x) }

// Dot4 returns sum plus the sum of the products of the four signed bytes of x and y.
func (b *Builder) Dot4(x, y, sum Value) Value { return b.op(OpDot4, x, y, sum) }

// Float32 operations, each rounded to nearest even.

// FAdd returns x + y.
func (b *Builder) FAdd(x, y Value) Value { return b.op(OpFAdd, x, y) }

// FSub returns x - y.
func (b *Builder) FSub(x, y Value) Value { return b.op(OpFSub, x, y) }

// FMul returns x*y.
func (b *Builder) FMul(x, y Value) Value { return b.op(OpFMul, x, y) }

// FMA returns x*y + z, rounded once.
func (b *Builder) FMA(x, y, z Value) Value { return b.op(OpFMA, x, y, z) }

// FDiv returns x/y.
func (b *Builder) FDiv(x, y Value) Value { return b.op(OpFDiv, x, y) }

// FSqrt returns the square root of x.
func (b *Builder) FSqrt(x Value) Value { return b.op(OpFSqrt, x) }

// FNeg returns x with the other sign.
func (b *Builder) FNeg(x Value) Value { return b.Float(b.Xor(b.Bits(x), b.U(1<<31))) }

// FromInt returns a signed integer as a float32, rounded to nearest even.
func (b *Builder) FromInt(x Value) Value { return b.op(OpFromInt, x) }

// Bits returns the bits of a float32.
func (b *Builder) Bits(x Value) Value { return b.op(OpBits, x) }

// Float returns the float32 with the bits of x.
func (b *Builder) Float(x Value) Value { return b.op(OpFloat, x) }

// Comparisons.

// Equal returns x == y of integers.
func (b *Builder) Equal(x, y Value) Value { return b.op(OpEqual, x, y) }

// Less returns x < y, unsigned.
func (b *Builder) Less(x, y Value) Value { return b.op(OpLess, x, y) }

// LessSigned returns x < y, signed.
func (b *Builder) LessSigned(x, y Value) Value { return b.op(OpLessSigned, x, y) }

// FLess returns x < y, false if one is NaN.
func (b *Builder) FLess(x, y Value) Value { return b.op(OpFLess, x, y) }

// AndBool returns x && y.
func (b *Builder) AndBool(x, y Value) Value { return b.op(OpAndBool, x, y) }

// OrBool returns x || y.
func (b *Builder) OrBool(x, y Value) Value { return b.op(OpOrBool, x, y) }

// Not returns !x.
func (b *Builder) Not(x Value) Value { return b.op(OpNot, x) }

// Select returns x if c is true, else y. Both are computed.
func (b *Builder) Select(c, x, y Value) Value {
	b.want(OpSelect, c, Bool)
	t := b.k.Values[x].Type
	b.want(OpSelect, y, t)
	if d := b.k.Values[c]; d.Const {
		if d.Bits != 0 {
			return x
		}
		return y
	}
	if x == y {
		return x
	}
	return b.pure(OpSelect, t, []Value{c, x, y})
}
