package offload

import (
	"errors"
	"fmt"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/microkernel/devgen/weights"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/model"
	"sandwich/runtime/offload/handover"
)

// ErrUnsupported says that a model or a plan cannot run on a device.
var ErrUnsupported = errors.New("is not supported on a device; the cores can run it")

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s %w", fmt.Sprintf(format, args...), ErrUnsupported)
}

// check returns why a model under a plan cannot run on a device, but for the parts that the cores
// compute, or nil. The error wraps ErrUnsupported.
func check(a *exec.Assembly, onCores handover.Parts) error {
	if err := checkPlan(a.Plan); err != nil {
		return err
	}
	if a.States != nil {
		return unsupported("a model with recurrent states")
	}
	if a.Weights.Ranks() != 1 {
		return unsupported("tensor parallelism of %d ranks", a.Weights.Ranks())
	}
	for i := range a.Model.Ops {
		if onCores.Has(i) {
			continue
		}
		if feature := unsupportedFeature(a, &a.Model.Ops[i]); feature != "" {
			return unsupported("layer %d: %s", a.Model.Ops[i].Layer, feature)
		}
	}
	return nil
}

// CheckModel returns why no device can run a model, whatever its plan and its weight types, but for
// the experts, which the cores can compute. The error wraps ErrUnsupported.
func CheckModel(m *model.Model) error {
	onCores := handover.Experts(m)
	for i := range m.Ops {
		op := &m.Ops[i]
		if onCores.Has(i) {
			continue
		}
		feature := ""
		if op.Kind == model.OpMatMul {
			feature = unsupportedActivation(op)
		} else {
			feature = unsupportedFeature(nil, op)
		}
		if feature != "" {
			return unsupported("layer %d: %s", op.Layer, feature)
		}
	}
	return nil
}

func checkPlan(p *plans.Plan) error {
	if dot := microkernel.AttentionDots()[0]; p.Attention != dot {
		return unsupported("attention by %s (use %s)", p.Attention, dot)
	}
	if p.KV != microkernel.KVF16 {
		return unsupported("a KV cache of type %s", p.KV)
	}
	return nil
}

// unsupportedFeature names what the device kernels lack for an op; "" if they compute it. Only
// products need the assembly.
func unsupportedFeature(a *exec.Assembly, op *model.Op) string {
	switch op.Kind {
	case model.OpEmbed:
		if op.Types != nil || op.PosEmbed != nil {
			return "an embedding of token types or positions"
		}
	case model.OpNorm, model.OpAddNorm:
		switch {
		case op.Shift != nil:
			return "a LayerNorm"
		case op.Gain != nil || op.Kind == model.OpAddNorm && op.Scale != 1:
			return "a scaled sum of the residual stream"
		}
	case model.OpMatMul:
		return unsupportedProduct(a, op)
	case model.OpRotate:
		switch {
		case op.VNorm != nil || op.KeysAsValues || op.KVLayer != op.Layer:
			return "values derived from keys, or keys of another layer"
		case op.AttnTemperature != nil:
			return "queries scaled by position"
		}
	case model.OpAttention:
		switch {
		case op.Attn.Bidirectional:
			return "bidirectional attention"
		case op.Attn.Store != "":
			return "a KV store " + op.Attn.Store
		}
	case model.OpGather:
	default:
		if op.Kind.OfExperts() {
			return "experts; the cores can compute them (ops: [dense])"
		}
		return "op " + op.Kind.String()
	}
	return ""
}

func unsupportedProduct(a *exec.Assembly, op *model.Op) string {
	for i, w := range op.W {
		p := a.Weights.At(0, w)
		if err := weights.Supports(p.Layout.Type, p.Compute); err != nil {
			return err.Error()
		}
		if first := a.Weights.At(0, op.W[0]); op.Act != 0 && i > 0 &&
			(first.Layout.Type != p.Layout.Type || first.Compute != p.Compute) {
			return "gate and up projections of different types"
		}
	}
	return unsupportedActivation(op)
}

// unsupportedActivation names the activation of a product that device kernels lack, or "".
func unsupportedActivation(op *model.Op) string {
	if op.Act == 0 {
		return ""
	}
	if _, ok := gatedUnits[op.Act]; !ok || len(op.W) != 2 {
		return fmt.Sprintf("activation %v", op.Act)
	}
	return ""
}

// gatedUnits has the activations that the product kernel computes.
var gatedUnits = map[model.Activation]kernels.GLU{model.SwiGLU: kernels.SwiGLU, model.GeGLU: kernels.GeGLU}
