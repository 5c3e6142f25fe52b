package synth

import (
	"fmt"

	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
)

// Cut returns a smaller configuration with only the first layers, and fewer experts; 0 keeps all.
// The name gets a suffix. It returns the error of Check if the remaining parts do not fit together.
// `model synth` uses it.
func Cut(c model.Config, layers, experts int) (model.Config, error) {
	if layers < 0 || layers > c.Layers {
		return model.Config{}, fmt.Errorf("cannot keep %d layers of %s: give 1 to %d", layers, c.Name, c.Layers)
	}
	if experts < 0 || experts > c.Experts.Count || experts > 0 && experts < c.Experts.Used {
		if c.Experts.Count == 0 {
			return model.Config{}, fmt.Errorf("cannot keep %d experts: %s has none", experts, c.Name)
		}
		return model.Config{}, fmt.Errorf("cannot keep %d experts of %s: give %d (used per token) to %d", experts,
			c.Name,
			c.Experts.Used, c.Experts.Count)
	}
	if layers > 0 && layers < c.Layers {
		c.Name = fmt.Sprintf("%s-%dl", c.Name, layers)
		c.SharedKV = max(0, c.SharedKV-(c.Layers-layers)) // counts last layers
		c.Layers = layers
		c.KVHeadsOf, c.FFNOf = firstOf(c.KVHeadsOf, layers), firstOf(c.FFNOf, layers)
		c.Windows.Layers, c.NoValues = firstOf(c.Windows.Layers, layers), firstOf(c.NoValues, layers)
		c.Recurrence.Layers = firstOf(c.Recurrence.Layers, layers)
	}
	if experts > 0 && experts < c.Experts.Count {
		c.Name = fmt.Sprintf("%s-%dx", c.Name, experts)
		c.Experts.Count = experts
	}
	return c, arch.Check(c)
}

// firstOf returns the first n elements of a list, nil if it is nil.
func firstOf[T any](list []T, n int) []T {
	if list == nil {
		return nil
	}
	return list[:n:n]
}
