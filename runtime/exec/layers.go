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
	case a.Both:
		return kvcache.Passing{Width: a.Window}, nil
	case a.Window > 0:
		return kvcache.Window{Positions: a.Window}, nil
	}
	return kvcache.Full{}, nil
}

// memories are the stores that layers have memory of their own of, one entry for each layer; layers
// through which a forward only passes share theirs, which is counted once.
func (l *Layers) memories() (stores []int) {
	for _, of := range l.Of {
		if !l.passing(of) || !slices.Contains(stores, of) {
			stores = append(stores, of)
		}
	}
	return stores
}

// passing tells whether layers of a store write over each other.
func (l *Layers) passing(store int) bool {
	_, yes := l.Kinds[store].(kvcache.Passing)
	return yes
}

// full are as many layers that remember everything.
func full(layers int) Layers {
	return Layers{Kinds: []kvcache.Kind{kvcache.Full{}}, Of: make([]int, layers)}
}
