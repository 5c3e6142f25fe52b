package offload

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"sandwich/runtime/device"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
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
		words := max(leastTable, 1<<bits.Len(uint(len(in.host)-at.at/4-1)))
		in.host = append(in.host, make([]uint32, at.at/4+words-len(in.host))...)
	}
}

// leastTable is the least number of words for the tables of a store.
const leastTable = 16

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

// sendInputs writes embeddings, angles and words to host-visible memory and notes the copies to the
// buffers of the set.
func (f *forward) sendInputs(op *model.Op) error {
	s, rows := f.set, f.batch.Rows()
	embeddings, angles := rows*f.strides[model.BufX], len(f.ropes)*rows*f.angleWidth
	at := uint64(0)
	s.inputs = s.inputs[:0]
	for _, part := range []struct {
		to    *device.Slice
		words int
	}{{&s.acts[model.BufX], embeddings}, {&s.in.angles, angles}, {&s.in.words, len(s.in.host)}} {
		n := uint64(4 * part.words)
		if err := f.resize(part.to, n, device.DeviceLocal); err != nil {
			return err
		}
		if n > 0 {
			s.inputs = append(s.inputs, device.Copy{To: *part.to, From: device.Slice{Offset: at}, Bytes: n})
		}
		at += n
	}
	if err := f.resize(&s.inbox, at, f.blocks.host); err != nil {
		return err
	}
	for i := range s.inputs {
		s.inputs[i].From.Buffer = s.inbox.Buffer
	}
	host := s.inbox.Buffer.Host()
	if host == nil {
		s.outbox = slices.Grow(s.outbox[:0], int(at))[:at]
		host = s.outbox
	}
	words := unsafe.Slice((*float32)(unsafe.Pointer(&host[0])), at/4)
	if err := f.fill(op, words[:embeddings], words[embeddings:][:angles]); err != nil {
		return err
	}
	copy(host[4*(embeddings+angles):], bytesOf(s.in.host))
	if s.outbox != nil {
		return f.dev.Write(s.inbox.Buffer, 0, s.outbox)
	}
	return nil
}

// fill writes the scaled embeddings of the batch's tokens, [rows][stride], and the cosines and
// sines of its positions, [ropes][rows][width]. The memory may be slow to read.
func (f *forward) fill(op *model.Op, embeddings, angles []float32) error {
	hidden, stride := f.model.Dims.Hidden, f.strides[model.BufX]
	var rotated attention.Angles
	if len(angles) > 0 {
		rotated = attention.NewAngles(f.model, f.batch.Rows(), unsafe.Pointer(&angles[0]))
	}
	return divide(f.batch.Rows(), leastFilled, func(from, to int) error {
		padded := make([]float32, stride)
		row := padded[:hidden]
		for i := from; i < to; i++ {
			if err := f.assembly.Weights.Tokens.Row(row, int(f.batch.Tokens[i])); err != nil {
				return err
			}
			if op.Scale != 1 {
				for k := range row {
					row[k] *= op.Scale
				}
			}
			copy(embeddings[i*stride:], padded)
		}
		if len(angles) == 0 {
			return nil
		}
		for i := range f.batch.Spans {
			s := &f.batch.Spans[i]
			for row := max(from, s.Row); row < min(to, s.Row+s.Rows); row++ {
				f.ropes.Fill(&rotated, row, s.Pos+row-s.Row)
			}
		}
		return nil
	})
}

// leastFilled is the least number of rows that a goroutine fills.
const leastFilled = 16

// mostParts limits the goroutines of divide.
const mostParts = 16

// divide calls f for parts of n items, from several goroutines if parts have at least so many
// items, and returns their errors.
func divide(n, least int, f func(from, to int) error) error {
	parts := min(mostParts, runtime.GOMAXPROCS(0), n/least)
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
