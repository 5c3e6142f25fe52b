package plans

import (
	"fmt"
	"strings"

	"sandwich/microkernel"
)

// Partition reports whether the model can be divided among a number of equal tensor-parallel ranks.
// The error says why not. `sandwich tree --sections --model` calls it.
func (s ModelShape) Partition(ranks int) error {
	if ranks > maxRanks {
		return fmt.Errorf("%d ranks: use at most %d", ranks, maxRanks)
	}
	weights := make([]int, max(0, ranks))
	_, err := s.Cut(weights)
	return err
}

// blockOf returns the unit of a division along the columns of a role: the least common multiple of
// the blocks of its weight types.
func (s ModelShape) blockOf(role string) int {
	block := 1
	for _, w := range s.Weights {
		if w.Role == role {
			block = lcm(block, typeBlock(w.Type))
		}
	}
	return block
}

// typeBlock returns the unit of a division along k of a GGUF type. Types without kernels follow the
// naming of their family.
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

// lcm returns the least common multiple of two positive numbers.
func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / max(x, 1) * b
}
