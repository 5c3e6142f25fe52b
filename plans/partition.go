package plans

import (
	"fmt"
	"strings"

	"sandwich/microkernel"
)

// Partition tells whether the model can be cut for a number of tensor-parallel ranks: nil, or one sentence why not. q, k, v, gate and up are cut by rows, o and down
// by columns; a cut along columns falls on a block of the weight's type, so that ranks may be uneven, and each rank needs a query head and a
// block of the ffn width. KV heads may be shared. sandwich tree --sections --model asks it.
func (s ModelShape) Partition(ranks int) error {
	if ranks < 1 {
		return fmt.Errorf("%d ranks: there must be at least one", ranks)
	}
	if ranks == 1 {
		return nil
	}
	heads, ffn := s.Heads, s.FFN
	if s.Experts > 0 {
		ffn = s.ExpertFFN
	}
	block := s.blockOf("o")
	if whole := s.HeadDim * s.Heads / lcm(s.HeadDim, block); whole < heads {
		heads = whole
	}
	if ranks > heads {
		if heads < s.Heads {
			return fmt.Errorf("%d ranks: the %d heads can be cut in %d places only, since blocks of %d columns of o must stay whole", ranks, s.Heads, heads-1, block)
		}
		return fmt.Errorf("%d ranks: the model has %d heads", ranks, heads)
	}
	if block = s.blockOf("down"); ranks > ffn/block {
		return fmt.Errorf("%d ranks: the ffn width %d has %d blocks of %d", ranks, ffn, ffn/block, block)
	}
	return nil
}

// blockOf is the largest block of the types that the weights of a role have.
func (s ModelShape) blockOf(role string) int {
	block := 1
	for _, w := range s.Weights {
		if w.Role == role {
			block = max(block, typeBlock(w.Type))
		}
	}
	return block
}

// typeBlock is the number of values in a block of a GGUF type; types without kernels go by the rule of their names.
func typeBlock(name string) int {
	t, err := microkernel.ParseWeightType(name)
	switch lower := strings.ToLower(name); {
	case err == nil:
		return t.Block()
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
