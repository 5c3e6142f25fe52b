package exec

import (
	"fmt"

	"sandwich/runtime/model"
)

// headUnit is what attention's kernels take heads in: a vector of the widest instruction set.
const headUnit = 16

// checkValues refuses a model with an op whose values no code here computes, by layer and name:
// better at load than wrong numbers.
func checkValues(m *model.Model) error {
	if dim := m.Dims.HeadDim; dim%headUnit != 0 {
		return fmt.Errorf("a head dimension of %d is %w: it must be a multiple of %d", dim, model.ErrUnsupported,
			headUnit)
	}
	for i := range m.Ops {
		if lack := lacking(m, &m.Ops[i]); lack != "" {
			return fmt.Errorf("layer %d: %s is %w", m.Ops[i].Layer, lack, model.ErrUnsupported)
		}
	}
	return nil
}

// lacking names what this package does not compute of an op; "" where it computes all of it.
func lacking(m *model.Model, op *model.Op) string {
	switch a, r := op.Attn, op.Rope; {
	case op.Act != model.NoActivation && op.Act != model.SwiGLU:
		return "the activation " + op.Act.String()
	case a.Window != 0:
		return "attention with a window"
	case a.Softcap != 0:
		return "attention with capped scores"
	case a.Sinks:
		return "attention with sinks"
	case r != nil && r.Rule != "":
		return fmt.Sprintf("RoPE scaling %q", r.Rule)
	case r != nil && r.Dim != m.Dims.HeadDim:
		return fmt.Sprintf("rotating %d of %d head dimensions", r.Dim, m.Dims.HeadDim)
	case op.Router != model.SoftmaxOfChosen:
		return "routing by " + op.Router.String()
	}
	return ""
}
