package attention

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
)

// The types of this file describe a batch and the KV cache for code that computes attention outside
// this package, such as on a device.

// Segment is the part of a span in one KV block: N rows of the batch from Row on, at positions Pos,
// Pos+1, ... of the sequence.
type Segment struct {
	Row, N, Pos int
	Block       kvcache.BlockID
}

// Segments divides the spans of a batch at the borders of blocks of a store.
func Segments(spans []kvcache.Span, store int) (list []Segment) {
	for _, s := range divideByBlock(nil, spans, store) {
		list = append(list, Segment{Row: s.row, N: s.n, Pos: s.pos, Block: s.block})
	}
	return list
}

// Sequence is consecutive rows of one sequence as the layers of a store see it: as if the table had
// all blocks, and the first row were at position Pos of them.
type Sequence struct {
	Row, N, Pos int
	Table       []kvcache.BlockID
}

// Sequences returns what the layers of a store of a kind see of a batch.
func Sequences(kind kvcache.Kind, store int, spans []kvcache.Span) (list []Sequence) {
	v := newView(kind, store)
	v.update(spans)
	for _, s := range v.spans {
		list = append(list, Sequence{Row: s.row, N: s.n, Pos: s.pos, Table: s.table})
	}
	return list
}

// Place describes where the keys and values of a layer are in a KVStore, in bytes.
type Place struct {
	Layout microkernel.KVLayout
	First  int // block 0 of KV head 0
	Head   int // K block and V block of a KV head
	Block  int // blocks of all KV heads
}

// Place returns the place of a layer that has keys and values.
func (s *KVStore) Place(layer int) Place {
	l := &s.of[layer]
	return Place{Layout: l.layout, First: l.first, Head: l.pair, Block: l.pitch()}
}

// Block returns the memory of a block of a layer.
func (s *KVStore) Block(layer int, block kvcache.BlockID) []byte {
	l := &s.of[layer]
	return unsafe.Slice((*byte)(unsafe.Add(s.head(layer, 0), int(block)*l.pitch())), l.pitch())
}
