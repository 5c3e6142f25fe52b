package attention

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// KVStore is the memory of the KV cache of a model or of one rank. For every layer with keys and
// values of its own, every block of its store and every KV head it has a K block and a V block of
// 64 positions in microkernel.KVLayout.
type KVStore struct {
	memory  *mem.Buffer
	layers  tp.Layers
	of      []layerKV
	longest int // blocks of the largest store
}

// The package fails to compile if the blocks of kvcache and those of attention kernels differ in
// length. It is the lowest package that may import both.
var _ [0]struct{} = [microkernel.KVBlock - kvcache.BlockTokens]struct{}{}

// layerKV describes where the keys and values of a layer are.
type layerKV struct {
	layout  microkernel.KVLayout
	first   int // offset of its block 0 in bytes
	kvHeads int
	pair    int // bytes of a K block and its V block
}

// NewKVStore allocates `blocks` blocks on a NUMA node, or mem.AnyNode, for layers that keep every
// position, of a model or of a rank's part of it, and for attention by a dot product.
func NewKVStore(d model.Dims, elem microkernel.KVType, dot microkernel.AttentionDot, blocks, node int) (*KVStore,
	error) {
	return newKVStore(elem, dot, tp.FullLayers(d), kvcache.Paged(blocks), node, nil)
}

// newKVStore allocates the stores of the layers of a model or of a rank.
func newKVStore(elem microkernel.KVType, dot microkernel.AttentionDot, layers tp.Layers, specs []kvcache.Spec,
	node int, from mem.Allocator) (*KVStore, error) {
	s := &KVStore{layers: layers, of: make([]layerKV, len(layers.Of))}
	for layer, of := range layers.Of {
		if !layers.Keeps(layer) {
			continue
		}
		l := layers.LayoutOf(layer, elem).For(dot)
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
	for layer, keeper := range layers.KVLayer {
		s.of[layer] = s.of[keeper]
	}
	memory, err := from.Alloc(all, mem.Options{Node: node, Huge: true})
	if err != nil {
		return nil, fmt.Errorf("a KV cache of %d tokens does not fit into memory; lower the context or the "+
			"number of parallel requests: %w", s.longest*kvcache.BlockTokens, err)
	}
	s.memory = memory
	return s, nil
}

// Bytes returns the size of the cache.
func (s *KVStore) Bytes() int { return s.memory.Len() }

// Blocks returns the number of blocks of the largest store.
func (s *KVStore) Blocks() int { return s.longest }

// Free releases the memory. No forward may run then or later.
func (s *KVStore) Free() error { return s.memory.Free() }

// at returns the addresses of the K block and the V block of one KV head.
func (s *KVStore) at(layer int, block kvcache.BlockID, kvHead int) (k, v unsafe.Pointer) {
	l := &s.of[layer]
	k = unsafe.Add(s.head(layer, kvHead), int(block)*l.pitch())
	return k, unsafe.Add(k, l.layout.KBytes())
}

// head returns the address of block 0 of a KV head. Blocks are the layer's pitch apart.
func (s *KVStore) head(layer, kvHead int) unsafe.Pointer {
	l := &s.of[layer]
	return unsafe.Add(s.memory.Pointer(), l.first+kvHead*l.pair)
}

// pitch returns the size of a block of all KV heads in bytes.
func (l *layerKV) pitch() int { return l.kvHeads * l.pair }

// KVStores are the caches of all ranks. A block id stands for the same positions in each.
type KVStores []*KVStore

// NewKVStores allocates the stores of every rank on its node.
func NewKVStores(p *tp.Shards, plan *plans.Plan, specs []kvcache.Spec, from mem.Allocator) (list KVStores,
	err error) {
	for r := range p.List {
		s, err := newKVStore(plan.KV, plan.Attention, p.List[r].Layers, specs, p.List[r].Node, from)
		if err != nil {
			return nil, errors.Join(err, list.Free())
		}
		list = append(list, s)
	}
	return list, nil
}

// Bytes returns the size of all caches.
func (l KVStores) Bytes() (total int) {
	for _, s := range l {
		total += s.Bytes()
	}
	return total
}

// Free releases the memory. No forward may run then or later.
func (l KVStores) Free() (err error) {
	for _, s := range l {
		err = errors.Join(err, s.Free())
	}
	return err
}

// Memory returns the buffer of a rank.
func (l KVStores) Memory(rank int) *mem.Buffer { return l[rank].memory }

// Finite reports whether the keys and values of a layer are finite at a position of a block, in
// every rank.
func (l KVStores) Finite(layer int, block kvcache.BlockID, offset int) bool {
	for _, s := range l {
		of := &s.of[layer]
		for head := range of.kvHeads {
			if k, v := s.at(layer, block, head); !of.layout.Finite(k, v, offset) {
				return false
			}
		}
	}
	return true
}
