package exec

import (
	"fmt"
	"slices"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Layers says what the layers of a model remember: the kinds of its stores, and of each layer the
// store that it is of.
type Layers struct {
	Kinds []kvcache.Kind
	Of    []int
}

// LayersOf reads the attention values of a model's layers. Layers of one kind share a store: their
// blocks are taken and freed together. A kind that nobody registered is an error.
func LayersOf(m *model.Model) (l Layers, err error) {
	l.Of = make([]int, m.Dims.Layers)
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Kind != model.OpAttention {
			continue
		}
		k, err := kindOf(op.Attn)
		if err != nil {
			return l, fmt.Errorf("layer %d: %w", op.Layer, err)
		}
		at := slices.Index(l.Kinds, k)
		if at < 0 {
			at = len(l.Kinds)
			l.Kinds = append(l.Kinds, k)
		}
		l.Of[op.Layer] = at
	}
	return l, nil
}

func kindOf(a model.Attn) (kvcache.Kind, error) {
	switch {
	case a.Store != "":
		return kvcache.Named(a.Store)
	case a.Window > 0:
		return kvcache.Window{Positions: a.Window}, nil
	}
	return kvcache.Full{}, nil
}

// full are as many layers that remember everything.
func full(layers int) Layers {
	return Layers{Kinds: []kvcache.Kind{kvcache.Full{}}, Of: make([]int, layers)}
}
