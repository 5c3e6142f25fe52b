package devgen

import (
	"math"

	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

// Compute returns the result of an operation on words with a result that is a word, a float32 or a
// bool (0 or 1). It defines the operations; z is the third operand, if there is one.
func Compute(o Op, x, y, z uint32) (result uint32, isBool bool) {
	f := math.Float32frombits
	switch o {
	case OpAdd:
		return x + y, false
	case OpSub:
		return x - y, false
	case OpMul:
		return x * y, false
	case OpDiv:
		return x / y, false
	case OpRem:
		return x % y, false
	case OpAnd:
		return x & y, false
	case OpOr:
		return x | y, false
	case OpXor:
		return x ^ y, false
	case OpShl:
		return x << (y & 31), false
	case OpShr:
		return x >> (y & 31), false
	case OpSar:
		return uint32(int32(x) >> (y & 31)), false
	case OpDot4:
		return dot4(x, y, z), false
	case OpFromInt:
		return math.Float32bits(float32(int32(x))), false
	case OpFromHalf:
		return math.Float32bits(qtype.FloatFromHalf(uint16(x))), false
	case OpBits, OpFloat:
		return x, false
	case OpEqual:
		return truth(x == y), true
	case OpLess:
		return truth(x < y), true
	case OpLessSigned:
		return truth(int32(x) < int32(y)), true
	case OpFLess:
		return truth(f(x) < f(y)), true
	case OpAndBool:
		return x & y, true
	case OpOrBool:
		return x | y, true
	case OpNot:
		return x ^ 1, true
	case OpSelect:
		if x != 0 {
			return y, false
		}
		return z, false
	}
	return math.Float32bits(computeFloat(o, f(x), f(y), f(z))), false
}

func computeFloat(o Op, x, y, z float32) float32 {
	switch o {
	case OpFAdd:
		return x + y
	case OpFSub:
		return x - y
	case OpFMul:
		return x * y
	case OpFMA:
		return ref.FMA32(x, y, z)
	case OpFDiv:
		return x / y
	case OpFSqrt:
		return float32(math.Sqrt(float64(x)))
	}
	panic("devgen: " + o.String() + " has no value")
}

func dot4(x, y, sum uint32) uint32 {
	for i := 0; i < 32; i += 8 {
		sum += uint32(int32(int8(x>>i)) * int32(int8(y>>i)))
	}
	return sum
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
