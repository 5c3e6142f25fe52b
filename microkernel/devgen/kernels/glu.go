package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
)

// GLU is a gated linear unit.
type GLU uint8

// The gated units; x is the output of the gate and y that of the up projection.
const (
	SwiGLU GLU = iota // x*sigmoid(x) * y
	GeGLU             // x*Phi(x) * y, with the tanh approximation
)

// String returns the name of the unit.
func (u GLU) String() string {
	switch u {
	case SwiGLU:
		return "swiglu"
	case GeGLU:
		return "geglu"
	}
	return fmt.Sprintf("glu(%d)", uint8(u))
}

// emit returns unit(gate, up).
func (u GLU) emit(b *devgen.Builder, gate, up devgen.Value) devgen.Value {
	x := b.FNeg(gate)
	if u == GeGLU {
		x = b.FMul(b.FMA(b.FMul(gate, gate), b.F(arith.GELUC3), b.F(arith.GELUC1)), gate)
	}
	return b.FMul(b.FDiv(gate, b.FAdd(b.F(1), b.Exp(x))), up)
}
