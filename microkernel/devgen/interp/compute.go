package interp

import (
	"math"

	"sandwich/microkernel/devgen"
)

// compute runs an operation on values. The frequent ones have loops of their own.
func (m *machine) compute(in *devgen.Instr, active []int32) {
	d, x := m.values[in.Dst[0]], m.values[in.Args[0]]
	y, z := x, x
	if len(in.Args) > 1 {
		y = m.values[in.Args[1]]
	}
	if len(in.Args) > 2 {
		z = m.values[in.Args[2]]
	}
	f, bits := math.Float32frombits, math.Float32bits
	switch in.Op {
	case devgen.OpAdd:
		for _, l := range active {
			d[l] = x[l] + y[l]
		}
	case devgen.OpMul:
		for _, l := range active {
			d[l] = x[l] * y[l]
		}
	case devgen.OpAnd:
		for _, l := range active {
			d[l] = x[l] & y[l]
		}
	case devgen.OpShl:
		for _, l := range active {
			d[l] = x[l] << (y[l] & 31)
		}
	case devgen.OpShr:
		for _, l := range active {
			d[l] = x[l] >> (y[l] & 31)
		}
	case devgen.OpFMul:
		for _, l := range active {
			d[l] = bits(f(x[l]) * f(y[l]))
		}
	case devgen.OpFAdd:
		for _, l := range active {
			d[l] = bits(f(x[l]) + f(y[l]))
		}
	default:
		for _, l := range active {
			d[l], _ = devgen.Compute(in.Op, x[l], y[l], z[l])
		}
	}
}
