package offload

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"sandwich/runtime/device"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/kvcache"
)

// inputs are what a forward reads in addition to weights and cache: rows of embeddings and angles,
// and words that describe the batch. They stay on the device until the forward is done.
type inputs struct {
	angles device.Slice
	words  device.Slice
	host   []uint32 // what words holds
	number place    // of the forward, for marks
	stores []storeInputs
	logits place // of the rows whose logits are wanted
}

// storeInputs says where the words of a store are.
type storeInputs struct {
	segments  place // see kernels.Rotate
	sequences place // see kernels.Attention
	tables    place
	longest   int // rows of the longest sequence
	blocks    int // that the rows of a sequence see, at least; a power of two
	list      []attention.Segment
}

// place is a list in inputs.words: the byte at which it begins and its entries.
type place struct{ at, n int }

// describe collects the words of a batch. Tables come last, in as many words as tables of similar
// length take, so that the places of lists do not change from step to step of a decode batch.
func (in *inputs) describe(b *kvcache.Batch, kinds []kvcache.Kind, number uint32) {
	in.host = in.host[:0]
	in.number = in.begin(1)
	in.put(int(number))
	in.logits = in.begin(len(b.LogitRows))
	for _, row := range b.LogitRows {
		in.put(int(row))
	}
	in.stores = slices.Grow(in.stores[:0], len(kinds))[:len(kinds)]
	all := make([][]attention.Sequence, len(kinds))
	for store, kind := range kinds {
		s := &in.stores[store]
		*s = storeInputs{list: attention.Segments(b.Spans, store)}
		s.segments = in.begin(len(s.list))
		for _, g := range s.list {
			in.put(g.Row, g.N, g.Pos%kvcache.BlockTokens, int(g.Block))
		}
		all[store] = attention.Sequences(kind, store, b.Spans)
		s.sequences = in.begin(len(all[store]))
		at := 0
		for _, q := range all[store] {
			in.put(q.Row, q.N, q.Pos, at)
			at += len(q.Table)
			s.longest = max(s.longest, q.N)
			s.blocks = max(s.blocks, powerOfTwo((q.Pos+q.N+kvcache.BlockTokens-1)/kvcache.BlockTokens))
		}
	}
	for store := range in.stores {
		at := &in.stores[store].tables
		*at = in.begin(0)
		for _, q := range all[store] {
			for _, block := range q.Table {
				in.put(int(block))
			}
		}
		words := max(minTable, 1<<bits.Len(uint(len(in.host)-at.at/4-1)))
		in.host = append(in.host, make([]uint32, at.at/4+words-len(in.host))...)
	}
}

// minTable is the least number of words for the tables of a store.
const minTable = 16

// shape appends what the steps of a forward depend on: the numbers of rows and of list entries, the
// places of lists, and the blocks that are copied to the cores.
func (in *inputs) shape(to []byte, b *kvcache.Batch, staged []stagedBlock) []byte {
	put := func(list ...int) {
		for _, n := range list {
			to = binary.AppendUvarint(to, uint64(n))
		}
	}
	put(b.Rows(), len(b.LogitRows), len(in.host))
	for i := range in.stores {
		s := &in.stores[i]
		put(s.segments.at, s.segments.n, s.sequences.at, s.sequences.n, s.tables.at, s.longest, s.blocks)
	}
	for i := range staged {
		put(staged[i].block)
	}
	return to
}

// begin starts a list of n entries at an aligned place.
func (in *inputs) begin(n int) place {
	for len(in.host)%(alignment/4) != 0 {
		in.put(0)
	}
	return place{4 * len(in.host), n}
}

func (in *inputs) put(words ...int) {
	for _, w := range words {
		in.host = append(in.host, uint32(w))
	}
}

// at returns the binding of a list.
func (in *inputs) at(p place) device.Slice {
	return device.Slice{Buffer: in.words.Buffer, Offset: uint64(p.at)}
}

// maxParts limits the goroutines of divide.
const maxParts = 16

// divide calls f for parts of n items, from several goroutines if parts have at least so many
// items, and returns their errors.
func divide(n, least int, f func(from, to int) error) error {
	parts := min(maxParts, runtime.GOMAXPROCS(0), n/least)
	if parts <= 1 {
		return f(0, n)
	}
	var running sync.WaitGroup
	errs := make([]error, parts)
	for i := range errs {
		running.Go(func() { errs[i] = f(n*i/parts, n*(i+1)/parts) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// powerOfTwo returns the least power of two that is not below n, a positive number.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// minStatic is the least number of rows for which kernels of fixed rows are compiled. Products of
// fewer rows are bound by memory.
const minStatic = 16
