package exec

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"strings"

	"sandwich/microkernel"
	"sandwich/runtime/exec/load"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelfile"
)

// spareMemory is the part of the free memory, one in so many, that is left to page tables, the Go
// heap and other processes. The kernel kills a process that uses all of it.
const spareMemory = 16

// lower is the remedy for too little memory, by the flags of serving, tune and bench.
const lower = "lower --ctx or --parallel (of tune: --seq-max or --batch-max; of bench llm: -p, -n, --depth or --batch)"

// rows returns the most rows of a forward: those of a chunk, or of any text that is read at once.
func (o *Options) rows(m *model.Model) int {
	rows := max(o.Plan.Chunk, o.LogitRows)
	if m.WholeText() {
		rows = max(rows, cmp.Or(o.Context, m.Dims.Context))
	}
	return rows
}

// stores chooses the stores of the KV cache: with Blocks, or with as many blocks, at least Least,
// as take half of the free memory.
func (o *Options) stores(s *tp.Shards) (blocks int, specs []kvcache.Spec) {
	of := func(blocks int) []kvcache.Spec { return storeSizes(&s.Layers, blocks, o) }
	blocks = o.Blocks
	if free, limit := mem.Available(), min(o.Blocks, addressable(s, o.Plan.KV)); free >= 0 && o.Least > 0 &&
		o.Least < limit {
		more := sort.Search(limit-o.Least, func(i int) bool {
			return s.KVBytes(o.Plan.KV, of(o.Least+i+1)) > free/2
		})
		blocks = o.Least + more
	}
	return blocks, of(blocks)
}

// Default number of checkpoints of states: statesEach for each sequence. If the free memory bounds
// blocks, checkpoints take at most one part in stateShare of it.
const statesEach, stateShare = 4, 8

// storeSizes returns the stores for so many blocks of all sequences, with checkpoints of states.
func storeSizes(l *tp.Layers, blocks int, o *Options) []kvcache.Spec {
	sequences := max(1, o.Sequences)
	specs := kvcache.Sizes(l.Kinds, blocks, sequences, max(o.Plan.Chunk, o.LogitRows))
	if l.State == 0 || o.StateBytes < 0 {
		return specs
	}
	copies := o.StateBytes / l.State
	if o.StateBytes == 0 {
		copies = statesEach * int64(sequences)
		if free := mem.Available(); free >= 0 && o.Least > 0 {
			copies = min(copies, free/stateShare/l.State)
		}
		if copies > 0 {
			copies += o.draftStates(l)
		}
	}
	specs[l.StateStore()].Blocks += int(min(copies, math.MaxInt32))
	return specs
}

// maxDraftBytes bounds the memory for states in drafts.
const maxDraftBytes = 64 << 20

// draftStates returns the number of states that are kept in drafts: of all drafted rows, or none.
func (o *Options) draftStates(l *tp.Layers) int64 {
	if n := int64(o.DraftRows); n*l.State <= maxDraftBytes {
		return n
	}
	return 0
}

// Copies returns the number of checkpoints of states that fit the memory.
func (a *Assembly) Copies() (n int) {
	for _, s := range a.Stores {
		if s.States > 0 {
			n += s.Blocks - s.States
		}
	}
	return n
}

// addressable returns the largest number of blocks whose size fits an integer.
func addressable(p *tp.Shards, elem microkernel.KVType) int {
	perBlock := p.KVBytes(elem, kvcache.Sizes(p.Layers.Kinds, 1, 1, 1))
	return int(math.MaxInt64 / 4 / max(1, perBlock))
}

// checkMemory refuses a model whose weights, cache and activations do not fit the free memory,
// before loading.
func (a *Assembly) checkMemory(blocks int) error {
	if blocks < 1 || blocks > addressable(a.Shards, a.Plan.KV) || a.logits > 1<<30 {
		return fmt.Errorf("a KV cache of %d blocks and %d rows of logits are sizes that no machine has: %s",
			blocks, a.logits, lower)
	}
	cache := a.Shards.KVBytes(a.Plan.KV, a.Stores)
	weights := load.PackedBytes(a.Shards)
	activations := bufferBytes(a.Shards, a.Plan, a.rows, a.logits)
	free := mem.Available()
	free -= free / spareMemory
	remedy := lower
	if a.Copies() > 0 {
		remedy = "lower --state-bytes, " + strings.TrimPrefix(lower, "lower ")
	}
	if free >= 0 && cache+weights+activations > free {
		remedy += ", or use a smaller model"
		if limit := mem.BindingLimit(); limit != "" {
			remedy = limit + "; else " + remedy
		}
		return fmt.Errorf("the model needs %s, its KV cache of %d tokens %s and the activations of %d rows %s, "+
			"but only %s of memory is free for them: %s",
			mem.FormatBytes(weights), blocks*kvcache.BlockTokens, mem.FormatBytes(cache), a.rows,
			mem.FormatBytes(activations), mem.FormatBytes(free), remedy)
	}
	return nil
}

// MemoryOf returns the memory of a model with one rank, and the reasons why Open would refuse it.
func MemoryOf(m *model.Model) (out modelfile.Memory, refused []error) {
	own := tp.Shard{Model: m, First: true}
	out.Packed = load.ShardBytes(&own)
	layers, err := tp.LayersOf(m)
	if err != nil {
		return out, append(refused, err)
	}
	refused = unsupported(m)
	for layer := range layers.Of {
		if err := layers.LayoutOf(layer, microkernel.KVF16).Check(); layers.Keeps(layer) && err != nil {
			return out, append(refused, fmt.Errorf("layer %d: %w", layer, err))
		}
	}
	for i, k := range layers.Kinds {
		sizes := make([]kvcache.Spec, len(layers.Kinds))
		sizes[i].Blocks = 1
		switch block := layers.Bytes(microkernel.KVF16, sizes); {
		case k == kvcache.Recurrent{}:
			out.State = block
		case k.Most() == kvcache.All:
			out.PerToken += block / kvcache.BlockTokens
		default:
			limit := min(k.Most()+1, kvcache.BlocksFor(m.Dims.Context)) // a window may be wider than the context
			out.Bounded += block * int64(limit)
		}
	}
	return out, refused
}
