package interp

import (
	"math"

	"sandwich/microkernel/devgen"
)

// compute runs an operation on values. If most invocations are active, frequent operations run for
// all of them, which is faster: no instruction reads a value of an invocation that was not active
// when the value was computed, as devgen.Kernel.Validate checks.
func (m *machine) compute(in *devgen.Instr, active []int32) {
	d, x := m.values[in.Dst[0]], m.values[in.Args[0]]
	y, z := x, x
	if len(in.Args) > 1 {
		y = m.values[in.Args[1]]
	}
	if len(in.Args) > 2 {
		z = m.values[in.Args[2]]
	}
	if 2*len(active) >= len(d) && (computeIntegers(in.Op, d, x, y, z) || computeFloats(in.Op, d, x, y)) {
		return
	}
	for _, l := range active {
		d[l], _ = devgen.Compute(in.Op, x[l], y[l], z[l])
	}
}

// computeIntegers stores the results of a frequent operation on integers and bools in d. It returns
// false for other operations. The slices have equal lengths.
func computeIntegers(op devgen.Op, d, x, y, z []uint32) bool {
	x, y, z = x[:len(d)], y[:len(d)], z[:len(d)]
	switch op {
	case devgen.OpAdd:
		for l := range d {
			d[l] = x[l] + y[l]
		}
	case devgen.OpSub:
		for l := range d {
			d[l] = x[l] - y[l]
		}
	case devgen.OpMul:
		for l := range d {
			d[l] = x[l] * y[l]
		}
	case devgen.OpAnd, devgen.OpAndBool:
		for l := range d {
			d[l] = x[l] & y[l]
		}
	case devgen.OpOr, devgen.OpOrBool:
		for l := range d {
			d[l] = x[l] | y[l]
		}
	case devgen.OpXor:
		for l := range d {
			d[l] = x[l] ^ y[l]
		}
	case devgen.OpShl:
		for l := range d {
			d[l] = x[l] << (y[l] & 31)
		}
	case devgen.OpShr:
		for l := range d {
			d[l] = x[l] >> (y[l] & 31)
		}
	case devgen.OpSar:
		for l := range d {
			d[l] = uint32(int32(x[l]) >> (y[l] & 31))
		}
	case devgen.OpBits, devgen.OpFloat:
		copy(d, x)
	case devgen.OpSelect:
		for l := range d {
			if d[l] = z[l]; x[l] != 0 {
				d[l] = y[l]
			}
		}
	default:
		return false
	}
	return true
}

// computeFloats is computeIntegers for operations on float32.
func computeFloats(op devgen.Op, d, x, y []uint32) bool {
	x, y = x[:len(d)], y[:len(d)]
	f, bits := math.Float32frombits, math.Float32bits
	switch op {
	case devgen.OpFAdd:
		for l := range d {
			d[l] = bits(f(x[l]) + f(y[l]))
		}
	case devgen.OpFSub:
		for l := range d {
			d[l] = bits(f(x[l]) - f(y[l]))
		}
	case devgen.OpFMul:
		for l := range d {
			d[l] = bits(f(x[l]) * f(y[l]))
		}
	case devgen.OpFromInt:
		for l := range d {
			d[l] = bits(float32(int32(x[l])))
		}
	default:
		return false
	}
	return true
}
