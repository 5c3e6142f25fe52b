package exec

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"strings"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// spareMemory is the part of the free memory (one in this many) that is left to page tables, the Go
// heap and everybody else: the kernel ends whoever takes it all.
const spareMemory = 16

// lower is the remedy in the words of the verbs that serve, of tune and of what measures.
const lower = "lower --ctx or --parallel (of tune: --seq-max or --batch-max; of bench llm: -p, -n, --depth or --batch)"

// rows is the most rows of a forward: those of a chunk, or of any text that has to be read at once.
func (o *Options) rows(m *model.Model) int {
	rows := max(o.Plan.Chunk, o.LogitRows)
	if m.AtOnce() {
		rows = max(rows, cmp.Or(o.Context, m.Dims.Context))
	}
	return rows
}

// stores chooses the stores of the KV cache: of so many blocks as Blocks says, or of as many, at
// least Least, as take half of the free memory.
func (o *Options) stores(s *Shards) (blocks int, specs []kvcache.Spec) {
	of := func(blocks int) []kvcache.Spec { return s.Layers.sizes(blocks, o) }
	blocks = o.Blocks
	if free, most := mem.Available(), min(o.Blocks, s.addressable(o.Plan.KV)); free > 0 && o.Least > 0 &&
		o.Least < most {
		more := sort.Search(most-o.Least, func(i int) bool {
			return s.kvBytes(o.Plan.KV, of(o.Least+i+1)) > free/2
		})
		blocks = o.Least + more
	}
	return blocks, of(blocks)
}

// statesEach is how many copies of states there is room for, for each sequence that may be there,
// where nobody says otherwise; where blocks are bounded by the free memory, so are they, to one
// part in stateShare of it.
const statesEach, stateShare = 4, 8

// sizes are the stores for so many blocks of all sequences, and for copies of states.
func (l *Layers) sizes(blocks int, o *Options) []kvcache.Spec {
	sequences := max(1, o.Sequences)
	specs := kvcache.Sizes(l.Kinds, blocks, sequences, max(o.Plan.Chunk, o.LogitRows))
	if l.State == 0 || o.StateBytes < 0 {
		return specs
	}
	copies := o.StateBytes / l.State
	if o.StateBytes == 0 {
		copies = statesEach * int64(sequences)
		if free := mem.Available(); free > 0 && o.Least > 0 {
			copies = min(copies, free/stateShare/l.State)
		}
	}
	specs[l.stateStore()].Blocks += int(min(copies, math.MaxInt32))
	return specs
}

// Copies is how many copies of states there is room for beside those of the sequences.
func (a *Assembly) Copies() (n int) {
	for _, s := range a.Stores {
		if s.States > 0 {
			n += s.Blocks - s.States
		}
	}
	return n
}

// addressable is how many blocks of all layers have sizes that can be counted.
func (p *Shards) addressable(elem microkernel.KVType) int {
	perBlock := p.kvBytes(elem, kvcache.Sizes(p.Layers.Kinds, 1, 1, 1))
	return int(math.MaxInt64 / 4 / max(1, perBlock))
}

// checkMemory says before loading when the model and its cache cannot fit, with the numbers.
func (a *Assembly) checkMemory(blocks int) error {
	if blocks < 1 || blocks > a.Shards.addressable(a.Plan.KV) || a.logits > 1<<30 {
		return fmt.Errorf("a KV cache of %d blocks and %d rows of logits are sizes that no machine has: %s",
			blocks, a.logits, lower)
	}
	cache := a.Shards.kvBytes(a.Plan.KV, a.Stores)
	weights := a.Shards.PackedBytes()
	activations := a.Shards.bufferBytes(a.Plan, a.rows, a.logits)
	free := mem.Available()
	free -= free / spareMemory
	remedy := lower
	if a.Copies() > 0 {
		remedy = "lower --state-bytes, " + strings.TrimPrefix(lower, "lower ")
	}
	if free > 0 && cache+weights+activations > free {
		return fmt.Errorf("the model needs %s, its KV cache of %d tokens %s and the activations of %d rows %s, "+
			"but only %s of memory is free for them: %s, or use a smaller model",
			mem.FormatBytes(weights), blocks*kvcache.BlockTokens, mem.FormatBytes(cache), a.rows,
			mem.FormatBytes(activations), mem.FormatBytes(free), remedy)
	}
	return nil
}

// MemoryOf is what a model of one rank takes, and why divideModel would refuse it.
func MemoryOf(m *model.Model) (out model.Memory, refused []error) {
	own := shard{model: m, first: true}
	out.Packed = own.packedBytes()
	layers, err := layersOf(m)
	if err != nil {
		return out, append(refused, err)
	}
	refused = allLacking(m)
	for layer := range layers.Of {
		if err := layers.layoutOf(layer, microkernel.KVF16).Check(); layers.keeps(layer) && err != nil {
			return out, append(refused, fmt.Errorf("layer %d: %w", layer, err))
		}
	}
	for i, k := range layers.Kinds {
		sizes := make([]kvcache.Spec, len(layers.Kinds))
		sizes[i].Blocks = 1
		switch block := layers.bytes(microkernel.KVF16, sizes); {
		case k == kvcache.Recurrent{}:
			out.State = block
		case k.Most() == kvcache.All:
			out.PerToken += block / kvcache.BlockTokens
		default:
			most := min(k.Most()+1, kvcache.BlocksFor(m.Dims.Context)) // a window may be wider than the context
			out.Bounded += block * int64(most)
		}
	}
	return out, refused
}
