package exec

import (
	"fmt"
	"slices"
	"unsafe"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// States is the memory behind the block ids of a recurrent store: a block has the state of every op
// that has one, each at the begin of a cache line.
type States struct {
	memory *mem.Buffer
	store  int   // which of the stores
	block  int   // bytes of a block
	at     []int // by op: bytes before its state
}

// stateStore is the number of the store that has states, -1 where no layer has one.
func (l *Layers) stateStore() int {
	return slices.IndexFunc(l.Kinds, func(k kvcache.Kind) bool { return k == kvcache.Recurrent{} })
}

// stateLayout says where the states of a model's ops lie in a block, and how long it is.
func stateLayout(m *model.Model) (at []int, block int) {
	at = make([]int, len(m.Ops))
	for i := range m.Ops {
		at[i] = block
		block += (4*m.Ops[i].StateOf() + cacheLine - 1) / cacheLine * cacheLine
	}
	return at, block
}

// newStates reserves the blocks of the store that has states; nil where none has.
func newStates(p *Shards, specs []kvcache.Spec) (*States, error) {
	store := p.Layers.stateStore()
	if store < 0 {
		return nil, nil
	}
	s := &States{store: store}
	s.at, s.block = stateLayout(p.Whole)
	memory, err := mem.Alloc(s.block*specs[store].Blocks, mem.Options{Node: p.list[0].node, Huge: true})
	if err != nil {
		return nil, fmt.Errorf("%d states of %s do not fit, lower the number of parallel requests or --state-bytes: %w",
			specs[store].Blocks, mem.FormatBytes(int64(s.block)), err)
	}
	s.memory = memory
	return s, nil
}

// of points at the state of an op in a block.
func (s *States) of(op int, id kvcache.BlockID) *float32 {
	return (*float32)(unsafe.Add(s.memory.Pointer(), int(id)*s.block+s.at[op]))
}

// Bytes is the size of all blocks; of nil it is 0.
func (s *States) Bytes() int {
	if s == nil {
		return 0
	}
	return s.memory.Len()
}

// Each is the bytes of one sequence's state; of nil it is 0.
func (s *States) Each() int64 {
	if s == nil {
		return 0
	}
	return int64(s.block)
}

// Free returns the memory; no forward may run then or afterwards.
func (s *States) Free() error {
	if s == nil {
		return nil
	}
	return s.memory.Free()
}

// passage is rows of one sequence, and where its state goes meanwhile: from one block into another,
// often the same, of which a copy may be left in a third.
type passage struct {
	row, n         int
	from, to, keep kvcache.BlockID // NoState for nowhere
	more           bool            // the next passage is of the same sequence
}

// cutPassages splits the spans of a batch where a copy of their state stays.
func cutPassages(dst []passage, spans []kvcache.Span, store int) []passage {
	dst = dst[:0]
	for i := range spans {
		s := &spans[i]
		t := s.Tables[store]
		p := passage{row: s.Row, from: t[0], to: t[1]}
		end := s.Row + s.Rows
		for k, id := range t[2:] {
			if id == kvcache.NoState {
				continue
			}
			behind := s.Row + (s.Pos/kvcache.BlockTokens+k+1)*kvcache.BlockTokens - s.Pos
			p.n, p.keep, p.more = behind-p.row, id, behind < end
			dst = append(dst, p)
			p.row, p.from = behind, p.to
		}
		if p.n, p.keep, p.more = end-p.row, kvcache.NoState, false; p.n > 0 {
			dst = append(dst, p)
		}
	}
	return dst
}

// courses says where in the passages those of each sequence begin, and where the last ones end.
func courses(dst []int, list []passage) []int {
	dst = append(dst[:0], 0)
	for i := range list {
		if !list[i].more {
			dst = append(dst, i+1)
		}
	}
	return dst
}

// moveState makes what the passage begins with the content of its block: n elements at an offset of
// an op's state.
func (e *Executor) moveState(op int, p *passage, offset, n int) *float32 {
	to := addElems(e.states.of(op, p.to), offset)
	switch p.from {
	case p.to:
	case kvcache.NoState:
		clear(unsafe.Slice(to, n))
	default:
		copy(unsafe.Slice(to, n), unsafe.Slice(addElems(e.states.of(op, p.from), offset), n))
	}
	return to
}

// keepState leaves a copy where the passage asks for one.
func (e *Executor) keepState(op int, p *passage, state *float32, offset, n int) {
	if p.keep != kvcache.NoState {
		copy(unsafe.Slice(addElems(e.states.of(op, p.keep), offset), n), unsafe.Slice(state, n))
	}
}
