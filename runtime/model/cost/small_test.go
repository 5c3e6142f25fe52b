package cost

import (
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
)

// small returns a model of a family with two layers of small sizes.
func small(family string) model.Config {
	c, ok := synth.Tiny(family)
	if !ok { // the architecture of a test
		c, _ = synth.Tiny("llama")
		c.Arch = family
	}
	c.Name, c.Layers, c.Vocab, c.Context, c.Tied = "small", 2, 600, 128, false
	c.SharedKV, c.FFNOf, c.KVHeadsOf = 0, ends(c.FFNOf), ends(c.KVHeadsOf)
	c.Windows.Layers, c.NoValues = ends(c.Windows.Layers), ends(c.NoValues)
	if family == "qwen3moe" {
		c.Experts = model.Experts{Count: 4, Used: 2, FFN: 256}
	}
	return c
}

// ends returns the first and the last element of a list.
func ends[T any](list []T) []T {
	if list == nil {
		return nil
	}
	return []T{list[0], list[len(list)-1]}
}
