package exec

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// KVStore is the memory behind the block ids of kvcache: for every layer, block of its store and KV
// head, of the model or of one rank's share of it, a K block and a V block of 64 positions in
// microkernel.KVLayout.
type KVStore struct {
	layout  microkernel.KVLayout
	memory  *mem.Buffer
	layers  Layers
	first   []int // by layer: its block 0, counted in blocks of all KV heads
	longest int   // blocks of the largest store
	kvHeads int
	pair    int // bytes of a K block and its V block
}

// NewKVStore reserves the cache of `blocks` blocks for layers that remember everything, of a model
// or of a share of it, on a NUMA node (mem.AnyNode: wherever it is first written from).
func NewKVStore(d model.Dims, elem microkernel.KVType, blocks, node int) (*KVStore, error) {
	return newKVStore(d, elem, full(d.Layers), kvcache.Paged(blocks), node)
}

// newKVStore reserves the stores of a model's layers.
func newKVStore(d model.Dims, elem microkernel.KVType, layers Layers, specs []kvcache.Spec, node int) (*KVStore,
	error) {
	l := microkernel.KVLayout{HeadDim: d.HeadDim, Elem: elem}
	if err := l.Check(); err != nil {
		return nil, err
	}
	s := &KVStore{layout: l, layers: layers, kvHeads: d.KVHeads, pair: l.KBytes() + l.VBytes()}
	all := 0
	for layer, of := range layers.Of {
		if earlier := slices.Index(layers.Of[:layer], of); earlier >= 0 && layers.passing(of) {
			s.first = append(s.first, s.first[earlier])
			continue
		}
		s.first = append(s.first, all)
		s.longest = max(s.longest, specs[of].Blocks)
		all += specs[of].Blocks
	}
	memory, err := mem.Alloc(all*d.KVHeads*s.pair, mem.Options{Node: node, Huge: true})
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
	k = unsafe.Add(s.head(layer, kvHead), int(block)*s.pitch())
	return k, unsafe.Add(k, s.layout.KBytes())
}

// head is where block 0 of a KV head begins; block ids follow each other by pitch bytes.
func (s *KVStore) head(layer, kvHead int) unsafe.Pointer {
	return unsafe.Add(s.memory.Pointer(), (s.first[layer]*s.kvHeads+kvHead)*s.pair)
}

func (s *KVStore) pitch() int { return s.kvHeads * s.pair }

// KVStores are the caches of all ranks: a block id means the same positions in each.
type KVStores []*KVStore

// NewKVStores reserves the stores of the model's layers for every rank, on its node.
func NewKVStores(p *Shards, elem microkernel.KVType, specs []kvcache.Spec) (list KVStores, err error) {
	for r := range p.list {
		s, err := newKVStore(p.list[r].model.Dims, elem, p.Layers, specs, p.list[r].node)
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
