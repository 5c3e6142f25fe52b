package plans

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// WeightPlan is the compute path of a weight in both phases and for all M. The path determines the
// chain of additions (rule 6).
type WeightPlan struct {
	WeightKey
	Compute microkernel.Compute `json:"compute"`
}

// Chain is the order in which the terms of a product are added over k (rule 6).
type Chain uint8

// Values of Chain.
const (
	ChainWide    Chain = iota // one fused multiply-add per dequantized value
	ChainBlock                // a sum per scale block, then one fused multiply-add by its scale
	ChainGroup                // the sums of the blocks in 256 k, then one fused multiply-add by their activation scale
	ChainPair                 // a bfloat16 dot product per pair of k, rounded as the instruction does
	ChainInteger              // the exact integer sum of 256 k, then one fused multiply-add by its scales
	ChainTile                 // a tile product of bfloat16 per 32 k, rounded as the instruction does
)

// String returns the name of the chain.
func (c Chain) String() string {
	if names := [...]string{"wide", "block", "group", "pair", "integer", "tile"}; int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("chain(%d)", uint8(c))
}

// MarshalText writes the name.
func (c Chain) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// ChainOf returns the chain of additions of a compute path.
func ChainOf(c microkernel.Compute) Chain {
	switch c {
	case microkernel.ComputeInt8:
		return ChainBlock
	case microkernel.ComputeInt8Superblock:
		return ChainGroup
	case microkernel.ComputeInt8K:
		return ChainInteger
	case microkernel.ComputeBF16:
		return ChainPair
	case microkernel.ComputeBF16Tile:
		return ChainTile
	}
	return ChainWide
}

// weightPlanDoc is the one-line form in plan.yaml.
type weightPlanDoc struct {
	Weight         KeyText             `yaml:"weight"`
	Compute        microkernel.Compute `yaml:"compute"`
	weightReserved `yaml:",inline"`
}

// MarshalYAML writes the weight on one line.
func (w WeightPlan) MarshalYAML() (any, error) {
	d := weightPlanDoc{Weight: KeyText(w.WeightKey), Compute: w.Compute}
	if w.Compute == microkernel.ComputeInt8Superblock {
		block := longBlock
		d.Compute, d.Block = w.Compute.Arithmetic(), &block
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
		return fmt.Errorf("weight %s: write compute %s as %s with block: %d", w.WeightKey, d.Compute,
			d.Compute.Arithmetic(), longBlock)
	}
	if err := d.weightReserved.check(d.Compute); err != nil {
		return fmt.Errorf("weight %s: %w", w.WeightKey, err)
	}
	named := d.Compute == microkernel.ComputeInt8K || d.Compute == microkernel.ComputeBF16Tile
	if t, err := microkernel.ParseWeightType(w.Type); named && err == nil && !d.Compute.Takes(t) {
		return fmt.Errorf("weight %s: the path %s does not exist for %s weights", w.WeightKey, d.Compute, w.Type)
	}
	if d.Block == nil || *d.Block != longBlock {
		return nil
	}
	w.Compute = microkernel.ComputeInt8Superblock
	if t, err := microkernel.ParseWeightType(w.Type); err == nil && !w.Compute.Takes(t) {
		return fmt.Errorf("weight %s: block %d: weights of type %s have shorter blocks: leave block out", w.WeightKey,
			longBlock, w.Type)
	}
	return nil
}
