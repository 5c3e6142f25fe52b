package hf

import (
	"fmt"
	"slices"

	"sandwich/internal/message"
	"sandwich/runtime/model"
)

// WindowSize returns the size of windows, 0 for none.
func (h *File) WindowSize() int {
	if h.Sliding == nil {
		return 0
	}
	return *h.Sliding
}

// Windows returns the windowed layers: those of layer_types if the file has it, else all but the
// last layer of each period.
func (h *File) Windows(period int) model.Windows {
	w := model.Windows{Size: h.WindowSize(), Period: period}
	for i, kind := range h.LayerTypes {
		if has := kind == "sliding_attention"; has != w.Has(i) { // the list differs from the period
			w.Layers = nil
			for _, kind := range h.LayerTypes {
				w.Layers = append(w.Layers, kind == "sliding_attention")
			}
			break
		}
	}
	return w
}

// Require returns an error that names the sizes which are zero.
func (h *File) Require(sizes map[string]int) error {
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
	return fmt.Errorf("a config.json of %s without %s is %w: give the sizes", h.ModelType, message.Or(missing),
		model.ErrUnsupported)
}

// LayersOfKind returns which layers are of a kind by layer_types, nil if the file does not have it.
// It fails for a kind that is neither given nor in others.
func (h *File) LayersOfKind(kind string, others ...string) (out []bool, err error) {
	if h.LayerTypes != nil && len(h.LayerTypes) != h.Layers {
		return nil, fmt.Errorf("layer_types has %d entries for %d layers", len(h.LayerTypes), h.Layers)
	}
	for _, is := range h.LayerTypes {
		if is != kind && !slices.Contains(others, is) {
			return nil, fmt.Errorf("layer type %.40q in layer_types is %w in %s", is, model.ErrUnsupported, h.ModelType)
		}
		out = append(out, is == kind)
	}
	return out, nil
}
