package devgen

import "math/bits"

// fold returns the result of an operation on constants, or of one with a neutral operand.
// Float arithmetic is not folded.
func (b *Builder) fold(o Op, args []Value) (Value, bool) {
	if d := b.k.Values[args[0]]; len(args) == 1 && d.Const && o != OpFSqrt {
		r, _ := Compute(o, d.Bits, 0, 0)
		return b.constant(infos[o].result, r), true
	}
	if len(args) != 2 {
		return 0, false
	}
	x, y := b.k.Values[args[0]], b.k.Values[args[1]]
	switch infos[o].args[0] {
	case F32:
		return 0, false
	case Bool:
		return b.foldBool(o, args[0], args[1])
	}
	if x.Const && y.Const {
		return b.foldBoth(o, x.Bits, y.Bits)
	}
	if x.Const && (o == OpAdd || o == OpMul || o == OpOr || o == OpXor || o == OpAnd) {
		return b.foldOne(o, args[1], x.Bits)
	}
	if y.Const {
		return b.foldOne(o, args[0], y.Bits)
	}
	return b.foldSums(o, args[0], args[1])
}

// foldSums moves the constants of sums outward: (x+1)+y becomes (x+y)+1. Translators use such a
// constant as the offset of an address.
func (b *Builder) foldSums(o Op, x, y Value) (Value, bool) {
	s, t := b.sums[x], b.sums[y]
	if o != OpAdd || s.base == 0 && t.base == 0 {
		return 0, false
	}
	if s.base == 0 {
		s.base = x
	}
	if t.base == 0 {
		t.base = y
	}
	return b.plus(b.op(OpAdd, s.base, t.base), s.constant+t.constant), true
}

// plus returns x plus a constant.
func (b *Builder) plus(x Value, c uint32) Value {
	if s, ok := b.sums[x]; ok {
		x, c = s.base, s.constant+c
	}
	if c == 0 {
		return x
	}
	v := b.pure(OpAdd, U32, []Value{x, b.U(int(c))})
	b.sums[v] = sum{x, c}
	return v
}

// foldBool simplifies an operation on bools of which one is a constant.
func (b *Builder) foldBool(o Op, x, y Value) (Value, bool) {
	if b.k.Values[x].Const {
		x, y = y, x
	}
	switch d := b.k.Values[y]; {
	case !d.Const:
		return 0, false
	case (d.Bits != 0) == (o == OpAndBool): // neutral
		return x, true
	default:
		return y, true
	}
}

// foldBoth computes an integer operation.
func (b *Builder) foldBoth(o Op, x, y uint32) (Value, bool) {
	if (o == OpDiv || o == OpRem) && y == 0 {
		return 0, false
	}
	r, isBool := Compute(o, x, y, 0)
	if isBool {
		return b.constant(Bool, r), true
	}
	return b.constant(U32, r), true
}

// foldOne simplifies an operation with the constant c as its second operand.
func (b *Builder) foldOne(o Op, x Value, c uint32) (Value, bool) {
	power := c != 0 && c&(c-1) == 0
	exponent := bits.TrailingZeros32(c)
	switch {
	case c == 0 && (o == OpAdd || o == OpSub || o == OpOr || o == OpXor || o == OpShl || o == OpShr || o == OpSar):
		return x, true
	case c == 0 && (o == OpMul || o == OpAnd):
		return b.U(0), true
	case c == 1 && (o == OpMul || o == OpDiv):
		return x, true
	case o == OpAdd:
		return b.plus(x, c), true
	case o == OpSub:
		return b.plus(x, -c), true
	case power && o == OpMul:
		return b.op(OpShl, x, b.U(exponent)), true
	case power && o == OpDiv:
		return b.op(OpShr, x, b.U(exponent)), true
	case power && o == OpRem:
		return b.And(x, b.U(int(c-1))), true
	}
	if s, ok := b.sums[x]; ok && (o == OpMul || o == OpShl) {
		product, _ := Compute(o, s.constant, c, 0)
		return b.plus(b.op(o, s.base, b.U(int(c))), product), true
	}
	return 0, false
}
