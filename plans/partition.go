package plans

import (
	"fmt"
	"strings"

	"sandwich/microkernel"
)

// Partition tells whether the model can be cut for a number of equal tensor-parallel ranks: nil, or
// one sentence why not. sandwich tree --sections --model asks it.
func (s ModelShape) Partition(ranks int) error {
	if ranks > maxRanks {
		return fmt.Errorf("%d ranks: %d at most", ranks, maxRanks)
	}
	weights := make([]int, max(0, ranks))
	_, err := s.Cut(weights)
	return err
}

// blockOf is what a cut along the columns of a role must be a multiple of: the blocks of all types
// that its weights have.
func (s ModelShape) blockOf(role string) int {
	block := 1
	for _, w := range s.Weights {
		if w.Role == role {
			block = lcm(block, typeBlock(w.Type))
		}
	}
	return block
}

// typeBlock is what a cut along k of a GGUF type must be a multiple of; types without kernels go by
// the rule of their names.
func typeBlock(name string) int {
	t, err := microkernel.ParseWeightType(name)
	switch lower := strings.ToLower(name); {
	case err == nil:
		return t.KStep()
	case strings.Contains(lower, "_k") || strings.HasPrefix(lower, "iq") && lower != "iq4_nl":
		return 256
	case strings.HasPrefix(lower, "q") || strings.HasPrefix(lower, "iq"):
		return 32
	}
	return 1
}

// lcm of two positive numbers.
func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / max(x, 1) * b
}
