package exec

import (
	"fmt"

	"sandwich/runtime/model"
)

// checkValues refuses a model with an op whose values no code here computes, by layer and name:
// better at load than wrong numbers.
func checkValues(m *model.Model) error {
	if all := allLacking(m); len(all) > 0 {
		return all[0]
	}
	return nil
}

// allLacking says it of each thing once, by the first layer that has it.
func allLacking(m *model.Model) (all []error) {
	told := map[string]bool{}
	for i := range m.Ops {
		if lack := lacking(&m.Ops[i]); lack != "" && !told[lack] {
			told[lack] = true
			all = append(all, fmt.Errorf("layer %d: %s is %w", m.Ops[i].Layer, lack, model.ErrUnsupported))
		}
	}
	return all
}

// lacking names what this package does not compute of an op; "" where it computes all of it.
func lacking(op *model.Op) string {
	if r := op.Rope; r != nil && r.Rule != "" {
		return fmt.Sprintf("RoPE scaling %q", r.Rule)
	}
	return ""
}
