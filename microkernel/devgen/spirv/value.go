package spirv

import (
	"fmt"

	"sandwich/microkernel/devgen"
)

// plain has the instructions of operations that are one instruction.
var plain = map[devgen.Op]uint32{
	devgen.OpAdd: opIAdd, devgen.OpSub: opISub, devgen.OpMul: opIMul, devgen.OpDiv: opUDiv, devgen.OpRem: opUMod,
	devgen.OpAnd: opBitwiseAnd, devgen.OpOr: opBitwiseOr, devgen.OpXor: opBitwiseXor,
	devgen.OpFromInt: opConvertSToF, devgen.OpBits: opBitcast, devgen.OpFloat: opBitcast,
	devgen.OpEqual: opIEqual, devgen.OpLess: opULessThan, devgen.OpLessSigned: opSLessThan,
	devgen.OpFLess: opFOrdLessThan, devgen.OpAndBool: opLogicalAnd, devgen.OpOrBool: opLogicalOr,
	devgen.OpNot: opLogicalNot, devgen.OpSelect: opSelect,
}

// exact has the float operations that are one instruction, which must not be contracted.
var exact = map[devgen.Op]uint32{
	devgen.OpFAdd: opFAdd, devgen.OpFSub: opFSub, devgen.OpFMul: opFMul, devgen.OpFDiv: opFDiv,
}

var shifts = map[devgen.Op]uint32{
	devgen.OpShl: opShiftLeft, devgen.OpShr: opShiftRightLogical, devgen.OpSar: opShiftRightArith,
}

// value appends an operation with a result of a type and returns the result.
func (e *emitter) value(in *devgen.Instr, t id) id {
	args := make([]id, len(in.Args))
	for i, v := range in.Args {
		args[i] = e.values[v]
	}
	if op, ok := plain[in.Op]; ok {
		return e.op(op, t, args...)
	}
	if op, ok := exact[in.Op]; ok {
		return e.exact(op, t, args...)
	}
	if op, ok := shifts[in.Op]; ok { // a count beyond 31 is undefined in SPIR-V
		count := args[1]
		if !e.k.Values[in.Args[1]].Const {
			count = e.op(opBitwiseAnd, e.u32, count, e.u(31))
		}
		return e.op(op, t, args[0], count)
	}
	switch in.Op {
	case devgen.OpBuiltin:
		return e.builtinValue(in.Index)
	case devgen.OpPush:
		return e.fromWord(e.argument(len(e.k.Bindings)+int(in.Index), e.u32), t)
	case devgen.OpLoadVar:
		return e.op(opLoad, t, e.vars[in.Index])
	case devgen.OpLoad:
		return e.fromWord(e.op(opLoad, e.u32, e.element(in), alignedAccess, 4), t)
	case devgen.OpLoadShared:
		return e.fromWord(e.op(opLoad, e.u32, e.element(in)), t)
	case devgen.OpDot4:
		return e.dot4(args)
	case devgen.OpFMA:
		return e.fma(args)
	case devgen.OpFSqrt:
		r := e.new()
		e.extended(r, glslSqrt, t, args...)
		return r
	}
	panic(fmt.Sprintf("spirv: unknown operation %s", in.Op))
}

// exact appends a float operation that must not be contracted with others.
func (e *emitter) exact(op uint32, t id, args ...id) id {
	r := e.op(op, t, args...)
	e.decorate(r, decorationNoContraction)
	return r
}

func (e *emitter) builtinValue(which int32) id {
	if which == devgen.LocalIndex {
		return e.op(opLoad, e.u32, e.localIndex)
	}
	v := e.op(opLoad, e.vec3u, e.grid)
	return e.op(opCompositeExtract, e.u32, v, id(which-devgen.GroupX))
}

func (e *emitter) dot4(args []id) id {
	e.capability(capabilityDot)
	e.capability(capabilityDotPacked)
	const packedFormat4x8 = 0
	signed := e.typ(opTypeInt, 32, 1)
	dot := e.op(opSDot, signed, args[0], args[1], packedFormat4x8)
	return e.op(opIAdd, e.u32, dot, args[2])
}

// fma appends a fused multiply-add.
func (e *emitter) fma(args []id) id {
	if e.o.SoftFMA {
		return e.softFMA(args[0], args[1], args[2])
	}
	r := e.new()
	e.extended(r, glslFMA, e.f32, args...)
	e.decorate(r, decorationNoContraction)
	return r
}

// softFMA appends a fused multiply-add in float64: the product is exact there, and its sum is
// rounded to odd before it is rounded to float32 (Boldo and Melquiond, "Emulation of FMA and
// correctly rounded sums: proved algorithms using rounding to odd", 2008).
func (e *emitter) softFMA(a, b, c id) id {
	d := e.double()
	wide := func(x id) id { return e.op(opFConvert, d, x) }
	sub := func(x, y id) id { return e.exact(opFSub, d, x, y) }
	product, addend := e.exact(opFMul, d, wide(a), wide(b)), wide(c)
	sum := e.exact(opFAdd, d, product, addend)
	// Knuth's two-sum: lost is exactly product + addend - sum.
	rounded := sub(sum, product)
	lost := e.exact(opFAdd, d, sub(product, sub(sum, rounded)), sub(addend, rounded))

	zero, pair := e.null(d), e.typ(opTypeVector, uint32(e.u32), 2)
	words := e.op(opBitcast, pair, sum)
	low := e.op(opCompositeExtract, e.u32, words, 0)
	high := e.op(opCompositeExtract, e.u32, words, 1)
	even := e.op(opIEqual, e.boolean, e.op(opBitwiseAnd, e.u32, low, e.u(1)), e.u(0))
	adjust := e.op(opLogicalAnd, e.boolean, even, e.op(opFOrdNotEqual, e.boolean, lost, zero))
	away := e.op(opLogicalEqual, e.boolean, e.op(opFOrdGreaterThan, e.boolean, lost, zero),
		e.op(opFOrdGreaterThan, e.boolean, sum, zero))
	// The last bit of an even number is 0: away from zero sets it, toward zero subtracts one.
	borrow := e.op(opSelect, e.u32, e.op(opIEqual, e.boolean, low, e.u(0)), e.u(1), e.u(0))
	lowAway, lowToward := e.op(opBitwiseOr, e.u32, low, e.u(1)), e.op(opISub, e.u32, low, e.u(1))
	highToward := e.op(opISub, e.u32, high, borrow)
	odd := e.op(opCompositeBuild, pair, e.op(opSelect, e.u32, away, lowAway, lowToward),
		e.op(opSelect, e.u32, away, high, highToward))
	sum = e.op(opSelect, d, adjust, e.op(opBitcast, d, odd), sum)
	// Some compilers replace x + 0 by x, which has the wrong sign if x is -0. A sum of zero is
	// negative only if both operands are.
	highOf := func(x id) id { return e.op(opCompositeExtract, e.u32, e.op(opBitcast, pair, x), 1) }
	sign := e.op(opBitwiseAnd, e.u32, e.op(opBitwiseAnd, e.u32, highOf(product), highOf(addend)), e.u(1<<31))
	none := e.op(opBitcast, d, e.op(opCompositeBuild, pair, e.u(0), sign))
	sum = e.op(opSelect, d, e.op(opFUnordNotEqual, e.boolean, sum, zero), sum, none) // a NaN stays
	return e.op(opFConvert, e.f32, sum)
}
