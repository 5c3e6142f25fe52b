package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// hfCount is a number that may be null (0), which differs from a missing one.
type hfCount struct {
	value int
	given bool
}

// UnmarshalJSON reads a number, or null as 0.
func (n *hfCount) UnmarshalJSON(data []byte) error {
	n.given = true
	return json.Unmarshal(data, &n.value)
}

// or returns the number, or the default if the file has none.
func (n hfCount) or(otherwise int) int {
	if n.given {
		return n.value
	}
	return otherwise
}

// require returns an error that names the sizes which are zero.
func (h *HF) require(sizes map[string]int) error {
	var missing []string
	for name, n := range sizes {
		if n == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing) // maps have no order
	return fmt.Errorf("a config.json of %s without %s is %w: give the sizes", h.ModelType, anyOf(missing),
		ErrUnsupported)
}

// kinds returns which layers are of a kind by layer_types, nil if the file does not have it. It
// fails for a kind that is neither given nor in others.
func (h *HF) kinds(kind string, others ...string) (out []bool, err error) {
	if h.LayerTypes != nil && len(h.LayerTypes) != h.Layers {
		return nil, fmt.Errorf("layer_types has %d entries for %d layers", len(h.LayerTypes), h.Layers)
	}
	for _, is := range h.LayerTypes {
		if is != kind && !slices.Contains(others, is) {
			return nil, fmt.Errorf("layer type %.40q in layer_types is %w in %s", is, ErrUnsupported, h.ModelType)
		}
		out = append(out, is == kind)
	}
	return out, nil
}
