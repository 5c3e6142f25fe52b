package tp

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Layers describes what the layers of a model keep for a sequence: the kinds of stores, and for
// each layer its store, its heads, and the layer whose keys and values it reads (usually its own).
type Layers struct {
	Kinds   []kvcache.Kind
	Of      []int // store of a layer
	Heads   []model.Heads
	KVLayer []int // layer that stores the keys and values that a layer reads
	State   int64 // bytes of a sequence in the recurrent store, or 0
}

// LayersOf reads the attention values of a model's layers. Layers of one kind share a store: their
// blocks are allocated and freed together. An unknown kind is an error.
func LayersOf(m *model.Model) (l Layers, err error) {
	l.Of, l.KVLayer = make([]int, m.Dims.Layers), make([]int, m.Dims.Layers)
	l.Heads = make([]model.Heads, m.Dims.Layers)
	for i := range l.KVLayer {
		l.KVLayer[i] = i // also of layers without attention
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
		l.Of[op.Layer], l.Heads[op.Layer], l.KVLayer[op.Layer] = at, op.Heads, op.KVLayer
		if op.Attn.Bidirectional {
			l.reuse(op.Layer)
		}
	}
	if _, block := StateLayout(m); block > 0 {
		l.State = int64(block)
		l.Kinds = append(l.Kinds, kvcache.Recurrent{})
	}
	return l, nil
}

// reuse lets a bidirectional layer overwrite the keys and values of the first layer of its store: a
// forward reads them only within the layer.
func (l *Layers) reuse(layer int) {
	for i, of := range l.Of[:layer] {
		if of == l.Of[layer] && l.Heads[i] == l.Heads[layer] {
			l.KVLayer[layer] = i
			return
		}
	}
}

func kindOf(a model.Attn) (kvcache.Kind, error) {
	switch {
	case a.Store != "":
		return kvcache.Named(a.Store)
	case a.Bidirectional:
		return kvcache.Passing{Width: a.Window}, nil
	case a.Window > 0:
		return kvcache.Window{Positions: a.Window}, nil
	}
	return kvcache.Full{}, nil
}

// FullLayers returns layers of equal heads that keep every position.
func FullLayers(d model.Dims) Layers {
	l := Layers{Kinds: []kvcache.Kind{kvcache.Full{}}, Of: make([]int, d.Layers)}
	for i := range d.Layers {
		l.Heads = append(l.Heads, model.Heads{Q: d.Heads, KV: d.KVHeads, Dim: d.HeadDim})
		l.KVLayer = append(l.KVLayer, i)
	}
	return l
}

// Keeps reports whether a layer has keys and values of its own.
func (l *Layers) Keeps(layer int) bool { return l.KVLayer[layer] == layer && l.Heads[layer].KV > 0 }

// LayoutOf returns the memory layout of the keys and values of one KV head of a layer.
func (l *Layers) LayoutOf(layer int, elem microkernel.KVType) microkernel.KVLayout {
	return microkernel.KVLayout{HeadDim: l.Heads[layer].Dim, Elem: elem}
}

// Bytes returns the size of stores with the given numbers of blocks.
func (l *Layers) Bytes(elem microkernel.KVType, specs []kvcache.Spec) (total int64) {
	for layer, of := range l.Of {
		if l.Keeps(layer) {
			k := l.LayoutOf(layer, elem)
			total += int64(specs[of].Blocks) * int64(l.Heads[layer].KV*(k.KBytes()+k.VBytes()))
		}
	}
	if l.State > 0 {
		total += int64(specs[l.StateStore()].Blocks) * l.State
	}
	return total
}

// StateStore returns the index of the store of recurrent states, or -1.
func (l *Layers) StateStore() int {
	return slices.IndexFunc(l.Kinds, func(k kvcache.Kind) bool { return k == kvcache.Recurrent{} })
}

// StateLayout returns where the state of each op of a model begins in a block of the recurrent
// store, in bytes, and the size of the block.
func StateLayout(m *model.Model) (at []int, block int) {
	at = make([]int, len(m.Ops))
	for i := range m.Ops {
		at[i] = block
		block += raw.Lines(4 * m.Ops[i].StateOf())
	}
	return at, block
}
