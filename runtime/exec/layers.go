package exec

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Layers says what the layers of a model remember: the kinds of its stores, and of each layer the
// store that it is of, its heads, and the layer whose keys and values it reads, as a rule its own.
type Layers struct {
	Kinds  []kvcache.Kind
	Of     []int
	Heads  []model.Heads
	Keeper []int
	State  int64 // bytes of a sequence in the recurrent store, 0 where there is none
}

// layersOf reads the attention values of a model's layers. Layers of one kind share a store: their
// blocks are taken and freed together. A kind that nobody registered is an error.
func layersOf(m *model.Model) (l Layers, err error) {
	l.Of, l.Keeper = make([]int, m.Dims.Layers), make([]int, m.Dims.Layers)
	l.Heads = make([]model.Heads, m.Dims.Layers)
	for i := range l.Keeper {
		l.Keeper[i] = i // of layers that do not attend, too: layer 0 may
	}
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
		l.Of[op.Layer], l.Heads[op.Layer], l.Keeper[op.Layer] = at, op.Heads, op.Keeper
		if op.Attn.Both {
			l.pass(op.Layer)
		}
	}
	if _, block := stateLayout(m); block > 0 {
		l.State = int64(block)
		l.Kinds = append(l.Kinds, kvcache.Recurrent{})
	}
	return l, nil
}

// pass lets a layer through which a forward only passes write over the keys and values of the first
// one of its store.
func (l *Layers) pass(layer int) {
	for i, of := range l.Of[:layer] {
		if of == l.Of[layer] && l.Heads[i] == l.Heads[layer] {
			l.Keeper[layer] = i
			return
		}
	}
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

// full are as many layers that remember everything, of heads of one size.
func full(d model.Dims) Layers {
	l := Layers{Kinds: []kvcache.Kind{kvcache.Full{}}, Of: make([]int, d.Layers)}
	for i := range d.Layers {
		l.Heads, l.Keeper = append(l.Heads, model.Heads{Q: d.Heads, KV: d.KVHeads, Dim: d.HeadDim}), append(l.Keeper, i)
	}
	return l
}

// keeps tells whether a layer has keys and values of its own.
func (l *Layers) keeps(layer int) bool { return l.Keeper[layer] == layer && l.Heads[layer].KV > 0 }

// layoutOf is how a layer's keys and values lie in memory, those of a KV head.
func (l *Layers) layoutOf(layer int, elem microkernel.KVType) microkernel.KVLayout {
	return microkernel.KVLayout{HeadDim: l.Heads[layer].Dim, Elem: elem}
}

// bytes is what stores of these sizes take of a rank that has these layers' heads.
func (l *Layers) bytes(elem microkernel.KVType, specs []kvcache.Spec) (total int64) {
	for layer, of := range l.Of {
		if l.keeps(layer) {
			k := l.layoutOf(layer, elem)
			total += int64(specs[of].Blocks) * int64(l.Heads[layer].KV*(k.KBytes()+k.VBytes()))
		}
	}
	if l.State > 0 {
		total += int64(specs[l.stateStore()].Blocks) * l.State
	}
	return total
}
