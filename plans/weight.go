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
	ChainGroup              // the block chains of 256 k, then one fused multiply-add by the scale of their activations
	ChainPair               // each pair of k added by a dot product of bfloat16, with the rounding of the instruction
)

// String is the name that people read.
func (c Chain) String() string {
	if names := [...]string{"wide", "block", "group", "pair"}; int(c) < len(names) {
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
	case microkernel.ComputeInt8Superblock:
		return ChainGroup
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
	d := weightPlanDoc{Weight: keyText(w.WeightKey), Compute: w.Compute.Arithmetic()}
	if w.Compute == microkernel.ComputeInt8Superblock {
		block := longBlock
		d.Block = &block
	}
	return profiles.FlowYAML(d)
}

// UnmarshalYAML reads what MarshalYAML writes.
func (w *WeightPlan) UnmarshalYAML(unmarshal func(any) error) error {
	var d weightPlanDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*w = WeightPlan{WeightKey(d.Weight), d.Compute}
	if d.Compute == microkernel.ComputeInt8Superblock {
		return fmt.Errorf("weight %s: compute %s is written %s with block: %d", w.WeightKey, d.Compute,
			d.Compute.Arithmetic(), longBlock)
	}
	if err := d.weightReserved.check(d.Compute); err != nil {
		return fmt.Errorf("weight %s: %w", w.WeightKey, err)
	}
	if d.Block == nil || *d.Block != longBlock {
		return nil
	}
	w.Compute = microkernel.ComputeInt8Superblock
	if t, err := microkernel.ParseWeightType(w.Type); err == nil && !w.Compute.Takes(t) {
		return fmt.Errorf("weight %s: block %d: weights of %s stand in shorter blocks: leave block out", w.WeightKey,
			longBlock, w.Type)
	}
	return nil
}
