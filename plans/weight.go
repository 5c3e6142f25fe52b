package plans

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// WeightPlan is what a weight keeps through both phases and all M: its compute path, from which its
// chain of additions follows (rule 6).
type WeightPlan struct {
	WeightKey
	Compute microkernel.Compute `json:"compute"`
}

// Chain is how a product over k is added up (rule 6).
type Chain uint8

// The chains.
const (
	ChainWide  Chain = iota // over dequantized values
	ChainBlock              // each scale block summed, then one fused multiply-add by its scale
	ChainPair               // each pair of k added by a dot product of bfloat16, with the rounding of the instruction
)

// String is the name that people read.
func (c Chain) String() string {
	if names := [...]string{"wide", "block", "pair"}; int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("chain(%d)", uint8(c))
}

// MarshalText writes the name.
func (c Chain) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// ChainOf is the chain of additions of a compute path.
func ChainOf(c microkernel.Compute) Chain {
	switch c {
	case microkernel.ComputeInt8:
		return ChainBlock
	case microkernel.ComputeBF16:
		return ChainPair
	}
	return ChainWide
}

// weightPlanDoc is the one-line form in plan.yaml.
type weightPlanDoc struct {
	Weight         keyText             `yaml:"weight"`
	Compute        microkernel.Compute `yaml:"compute"`
	weightReserved `yaml:",inline"`
}

// MarshalYAML writes the weight on one line.
func (w WeightPlan) MarshalYAML() (any, error) {
	return profiles.FlowYAML(weightPlanDoc{Weight: keyText(w.WeightKey), Compute: w.Compute})
}

// UnmarshalYAML reads what MarshalYAML writes.
func (w *WeightPlan) UnmarshalYAML(unmarshal func(any) error) error {
	var d weightPlanDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*w = WeightPlan{WeightKey(d.Weight), d.Compute}
	if err := d.weightReserved.check(d.Compute); err != nil {
		return fmt.Errorf("weight %s: %w", w.WeightKey, err)
	}
	return nil
}
