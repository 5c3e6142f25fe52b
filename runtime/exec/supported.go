package exec

import (
	"fmt"

	"sandwich/plans"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

// divideModel divides a model among the ranks of a plan. It refuses a model with an op that this
// package does not compute.
func divideModel(m *model.Model, plan *plans.Plan) (*tp.Shards, error) {
	if all := unsupported(m); len(all) > 0 {
		return nil, all[0]
	}
	return tp.Divide(m, plan)
}

// unsupported returns an error for each feature of a model that is not computed, by the first layer
// that has it.
func unsupported(m *model.Model) (all []error) {
	told := map[string]bool{}
	for i := range m.Ops {
		if feature := unsupportedFeature(&m.Ops[i]); feature != "" && !told[feature] {
			told[feature] = true
			all = append(all, fmt.Errorf("layer %d: %s is %w", m.Ops[i].Layer, feature, model.ErrUnsupported))
		}
	}
	return all
}

// unsupportedFeature names the property of an op that is not supported; "" if all are.
func unsupportedFeature(op *model.Op) string {
	if r := op.Rope; r != nil && r.Rule != "" {
		return fmt.Sprintf("RoPE scaling %q", r.Rule)
	}
	if op.Shift != nil && op.Post != nil {
		return "a LayerNorm of a sum whose summand is normalized"
	}
	return ""
}
