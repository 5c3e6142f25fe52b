package exec

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// KVStore is the memory behind the block ids of kvcache: for every layer that keeps some, block of
// its store and KV head, of the model or of one rank's share of it, a K block and a V block of 64
// positions in microkernel.KVLayout.
type KVStore struct {
	memory  *mem.Buffer
	layers  Layers
	of      []layerKV
	longest int // blocks of the largest store
}

// layerKV is where a layer's keys and values lie.
type layerKV struct {
	layout  microkernel.KVLayout
	first   int // bytes before its block 0
	kvHeads int
	pair    int // bytes of a K block and its V block
}

// NewKVStore reserves the cache of `blocks` blocks for layers that remember everything, of a model
// or of a share of it, for attention by a dot product, on a NUMA node (mem.AnyNode: wherever it is
// first written from).
func NewKVStore(d model.Dims, elem microkernel.KVType, dot microkernel.AttentionDot, blocks, node int) (*KVStore,
	error) {
	return newKVStore(elem, dot, full(d), kvcache.Paged(blocks), node)
}

// newKVStore reserves the stores of a model's layers, or of a rank's.
func newKVStore(elem microkernel.KVType, dot microkernel.AttentionDot, layers Layers, specs []kvcache.Spec,
	node int) (*KVStore, error) {
	s := &KVStore{layers: layers, of: make([]layerKV, len(layers.Of))}
	for layer, of := range layers.Of {
		if !layers.keeps(layer) {
			continue
		}
		l := layers.layoutOf(layer, elem).For(dot)
		if err := l.Check(); err != nil {
			return nil, err
		}
		kv := layers.Heads[layer].KV
		s.of[layer] = layerKV{layout: l, kvHeads: kv, pair: l.KBytes() + l.VBytes()}
		s.longest = max(s.longest, specs[of].Blocks)
	}
	all := 0
	for layer, of := range layers.Of {
		k := &s.of[layer]
		k.first = all
		all += specs[of].Blocks * k.pitch()
	}
	for layer, keeper := range layers.Keeper {
		s.of[layer] = s.of[keeper]
	}
	memory, err := mem.Alloc(all, mem.Options{Node: node, Huge: true})
	if err != nil {
		return nil, fmt.Errorf("the KV cache of %d tokens does not fit, lower the context or the number of "+
			"parallel requests: %w",
			s.longest*kvcache.BlockTokens, err)
	}
	s.memory = memory
	return s, nil
}

// Bytes is the size of the whole cache.
func (s *KVStore) Bytes() int { return s.memory.Len() }

// Blocks is the number of blocks of the largest store.
func (s *KVStore) Blocks() int { return s.longest }

// Free returns the memory; no forward may run then or afterwards.
func (s *KVStore) Free() error { return s.memory.Free() }

// at points at the K block and the V block of one KV head.
func (s *KVStore) at(layer int, block kvcache.BlockID, kvHead int) (k, v unsafe.Pointer) {
	l := &s.of[layer]
	k = unsafe.Add(s.head(layer, kvHead), int(block)*l.pitch())
	return k, unsafe.Add(k, l.layout.KBytes())
}

// head is where block 0 of a KV head begins; block ids follow each other by the layer's pitch.
func (s *KVStore) head(layer, kvHead int) unsafe.Pointer {
	l := &s.of[layer]
	return unsafe.Add(s.memory.Pointer(), l.first+kvHead*l.pair)
}

// pitch is the bytes of a block of all KV heads.
func (l *layerKV) pitch() int { return l.kvHeads * l.pair }

// KVStores are the caches of all ranks: a block id means the same positions in each.
type KVStores []*KVStore

// newKVStores reserves the stores of the model's layers for every rank, on its node.
func newKVStores(p *Shards, plan *plans.Plan, specs []kvcache.Spec) (list KVStores, err error) {
	for r := range p.list {
		s, err := newKVStore(plan.KV, plan.Attention, p.list[r].layers, specs, p.list[r].node)
		if err != nil {
			return nil, errors.Join(err, list.Free())
		}
		list = append(list, s)
	}
	return list, nil
}

// Bytes is the size of all of them.
func (l KVStores) Bytes() (total int) {
	for _, s := range l {
		total += s.Bytes()
	}
	return total
}

// Free returns the memory; no forward may run then or afterwards.
func (l KVStores) Free() (err error) {
	for _, s := range l {
		err = errors.Join(err, s.Free())
	}
	return err
}
