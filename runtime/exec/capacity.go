package exec

import (
	"fmt"
	"math"
	"sort"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// spareMemory is the part of the free memory (one in this many) that is left to page tables, the Go
// heap and everybody else: the kernel ends whoever takes it all.
const spareMemory = 16

// lower is the remedy in the words of the verbs that serve, and of tune.
const lower = "lower --ctx or --parallel (of tune: --seq-max or --batch-max)"

// size chooses the stores of the KV cache.
func (a *Assembly) size(o *Options) error {
	stores := func(blocks int) []kvcache.Spec {
		return kvcache.Sizes(a.Shards.Layers.Kinds, blocks, max(1, o.Sequences), a.rows)
	}
	a.Blocks = o.Blocks
	if free, most := mem.Available(), min(o.Blocks, a.addressable()); free > 0 && o.Least > 0 && o.Least < most {
		more := sort.Search(most-o.Least, func(i int) bool {
			return a.Shards.KVBytes(a.Plan.KV, stores(o.Least+i+1)) > free/2
		})
		a.Blocks = o.Least + more
	}
	a.Stores = stores(a.Blocks)
	return a.checkMemory(a.Blocks)
}

// addressable is how many blocks of all layers have sizes that can be counted.
func (a *Assembly) addressable() int {
	perBlock := a.Shards.KVBytes(a.Plan.KV, kvcache.Sizes(a.Shards.Layers.Kinds, 1, 1, 1))
	return int(math.MaxInt64 / 4 / max(1, perBlock))
}

// checkMemory says before loading when the model and its cache cannot fit, with the numbers.
func (a *Assembly) checkMemory(blocks int) error {
	if blocks < 1 || blocks > a.addressable() || a.logits > 1<<30 {
		return fmt.Errorf("a KV cache of %d blocks and %d rows of logits are sizes that no machine has: %s",
			blocks, a.logits, lower)
	}
	cache := a.Shards.KVBytes(a.Plan.KV, a.Stores)
	weights := a.Shards.PackedBytes()
	activations := a.Shards.BufferBytes(a.Plan, a.rows, a.logits)
	free := mem.Available()
	free -= free / spareMemory
	if free > 0 && cache+weights+activations > free {
		return fmt.Errorf("the model needs %s, its KV cache of %d tokens %s and the activations of %d rows %s, "+
			"but only %s of memory is free for them: %s, or use a smaller model",
			mem.FormatBytes(weights), blocks*kvcache.BlockTokens, mem.FormatBytes(cache), a.rows,
			mem.FormatBytes(activations), mem.FormatBytes(free), lower)
	}
	return nil
}

// MemoryOf is what a model of one rank takes, and why Divide would refuse it.
func MemoryOf(m *model.Model) (out model.Memory, err error) {
	own := shard{model: m, first: true}
	out.Packed = own.packedBytes()
	layers, err := LayersOf(m)
	if err != nil {
		return out, err
	}
	for i, k := range layers.Kinds {
		sizes := make([]kvcache.Spec, len(layers.Kinds))
		sizes[i].Blocks = 1
		if block := layers.bytes(microkernel.KVF16, sizes); k.Most() == kvcache.All {
			out.PerToken += block / kvcache.BlockTokens
		} else {
			out.Bounded += block * int64(k.Most()+1)
		}
	}
	return out, checkValues(m)
}
