package model

import "fmt"

// Cut is a model of c's shapes with its first layers only, and with fewer experts, for machines and
// minutes that hold no more: 0 leaves either as it is. Its name says so. Where the parts that are
// left no longer fit each other, Check says why. `model synth` calls it.
func (c Config) Cut(layers, experts int) (Config, error) {
	if layers < 0 || layers > c.Layers {
		return Config{}, fmt.Errorf("%s has %d layers: %d of them cannot be kept", c.Name, c.Layers, layers)
	}
	if experts < 0 || experts > c.Experts.Count || experts > 0 && experts < c.Experts.Used {
		if c.Experts.Count == 0 {
			return Config{}, fmt.Errorf("%s has no experts of which %d could be kept", c.Name, experts)
		}
		return Config{}, fmt.Errorf("%s has %d experts and uses %d for each token: %d of them cannot be kept", c.Name,
			c.Experts.Count, c.Experts.Used, experts)
	}
	if layers > 0 && layers < c.Layers {
		c.Name = fmt.Sprintf("%s-%dl", c.Name, layers)
		c.SharedKV = max(0, c.SharedKV-(c.Layers-layers)) // it counts the last ones
		c.Layers = layers
		c.KVHeadsOf, c.FFNOf = firstOf(c.KVHeadsOf, layers), firstOf(c.FFNOf, layers)
		c.Windows.Layers, c.NoValues = firstOf(c.Windows.Layers, layers), firstOf(c.NoValues, layers)
		c.Recurrence.Layers = firstOf(c.Recurrence.Layers, layers)
	}
	if experts > 0 && experts < c.Experts.Count {
		c.Name = fmt.Sprintf("%s-%dx", c.Name, experts)
		c.Experts.Count = experts
	}
	return c, c.Check()
}

// firstOf are the first n of a list, which may be nil.
func firstOf[T any](list []T, n int) []T {
	if list == nil {
		return nil
	}
	return list[:n:n]
}
