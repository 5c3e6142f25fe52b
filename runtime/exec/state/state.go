// Package state has the recurrent states of sequences and the ops that read and write them.
package state

import (
	"fmt"
	"unsafe"

	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
)

// States is the memory of a recurrent store. A block has the state of every op that has one, each
// at the start of a cache line. The methods accept nil, for a model without states.
type States struct {
	memory *mem.Buffer
	store  int   // index of the store
	block  int   // size of a block in bytes
	at     []int // by op: offset of its state in bytes
}

// New allocates the blocks of the recurrent store, or returns nil if no layer has a state.
func New(p *tp.Shards, specs []kvcache.Spec) (*States, error) {
	store := p.Layers.StateStore()
	if store < 0 {
		return nil, nil
	}
	s := &States{store: store}
	s.at, s.block = tp.StateLayout(p.Whole)
	memory, err := mem.Alloc(s.block*specs[store].Blocks, mem.Options{Node: p.List[0].Node, Huge: true})
	if err != nil {
		return nil, fmt.Errorf("%d states of %s do not fit into memory; lower the number of parallel requests or "+
			"--state-bytes: %w", specs[store].Blocks, mem.FormatBytes(int64(s.block)), err)
	}
	s.memory = memory
	return s, nil
}

// of returns the address of the state of an op in a block.
func (s *States) of(op int, id kvcache.BlockID) *float32 {
	return (*float32)(unsafe.Add(s.memory.Pointer(), int(id)*s.block+s.at[op]))
}

// Store returns the index of the recurrent store. s is not nil.
func (s *States) Store() int { return s.store }

// Block returns the content of a block. s is not nil.
func (s *States) Block(id kvcache.BlockID) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(s.of(0, id))), s.block)
}

// Memory returns the buffer of all blocks. s is not nil.
func (s *States) Memory() *mem.Buffer { return s.memory }

// Bytes returns the size of all blocks.
func (s *States) Bytes() int {
	if s == nil {
		return 0
	}
	return s.memory.Len()
}

// Each returns the size of the state of one sequence in bytes.
func (s *States) Each() int64 {
	if s == nil {
		return 0
	}
	return int64(s.block)
}

// Free releases the memory. No forward may run then or later.
func (s *States) Free() error {
	if s == nil {
		return nil
	}
	return s.memory.Free()
}

// segment is rows of one sequence between two checkpoints of its state, and the blocks of the
// state: from one block to another, often the same, with an optional copy in a third.
type segment struct {
	row, n         int
	from, to, keep kvcache.BlockID // kvcache.NoState for none
	more           bool            // the next segment is of the same sequence
}

// divide divides the spans of a batch where a copy of their state is kept: at the ends of blocks,
// and before a draft and in it.
func divide(dst []segment, spans []kvcache.Span, store int) []segment {
	dst = dst[:0]
	for i := range spans {
		s := &spans[i]
		t := s.Tables[store]
		p := segment{row: s.Row, from: t[0], to: t[1]}
		end := s.Row + s.Rows
		keep := func(next int, id kvcache.BlockID) {
			p.n, p.keep, p.more = next-p.row, id, next < end
			dst = append(dst, p)
			p.row, p.from = next, p.to
		}
		before := end - s.Draft
		ends := (s.Pos+s.Rows-s.Draft)/kvcache.BlockTokens - s.Pos/kvcache.BlockTokens
		for k, id := range t[3 : 3+ends] {
			if id != kvcache.NoState {
				keep(s.Row+(s.Pos/kvcache.BlockTokens+k+1)*kvcache.BlockTokens-s.Pos, id)
			}
		}
		if t[2] != kvcache.NoState {
			keep(before, t[2])
		}
		for k, id := range t[3+ends:] {
			keep(before+1+k, id)
		}
		if p.n, p.keep, p.more = end-p.row, kvcache.NoState, false; p.n > 0 {
			dst = append(dst, p)
		}
	}
	return dst
}

// sequenceOffsets returns the index of the first segment of each sequence, and the number of
// segments.
func sequenceOffsets(dst []int, list []segment) []int {
	dst = append(dst[:0], 0)
	for i := range list {
		if !list[i].more {
			dst = append(dst, i+1)
		}
	}
	return dst
}

// begin copies n elements at an offset of an op's state to the block that the segment writes, and
// returns their address.
func (s *States) begin(op int, p *segment, offset, n int) *float32 {
	to := raw.Add(s.of(op, p.to), offset)
	switch p.from {
	case p.to:
	case kvcache.NoState:
		clear(unsafe.Slice(to, n))
	default:
		copy(unsafe.Slice(to, n), unsafe.Slice(raw.Add(s.of(op, p.from), offset), n))
	}
	return to
}

// checkpoint keeps a copy if the segment has one.
func (s *States) checkpoint(op int, p *segment, state *float32, offset, n int) {
	if p.keep != kvcache.NoState {
		copy(unsafe.Slice(raw.Add(s.of(op, p.keep), offset), n), unsafe.Slice(state, n))
	}
}

// segments are those of a batch.
type segments struct {
	list    []segment
	offsets []int // of the sequences, in list
}

// sequences returns the number of sequences.
func (s *segments) sequences() int { return len(s.offsets) - 1 }

// of returns the segments of a sequence.
func (s *segments) of(sequence int) []segment {
	return s.list[s.offsets[sequence]:s.offsets[sequence+1]]
}
