package offload

import (
	"sync"

	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
)

// mirror records which positions of each KV block are the same on the device and in the cores'
// cache. Its methods may be called concurrently.
type mirror struct {
	layers *tp.Layers
	shared bool // both are the same memory
	mu     sync.Mutex
	valid  [][]uint8 // by store and block: the positions [0, valid) are on the device
}

func newMirror(layers *tp.Layers, stores []kvcache.Spec) *mirror {
	m := &mirror{layers: layers}
	for _, s := range stores {
		m.valid = append(m.valid, make([]uint8, s.Blocks))
	}
	return m
}

// writtenBlocks lists the blocks of a store that the rows of a batch are written to.
func writtenBlocks(spans []kvcache.Span, store int) (list []kvcache.BlockID) {
	for _, s := range attention.Segments(spans, store) {
		list = append(list, s.Block)
	}
	return list
}

// coresWrite notes that the cores write the rows of a batch.
func (m *mirror) coresWrite(spans []kvcache.Span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for store := range m.valid {
		for _, s := range attention.Segments(spans, store) {
			m.shorten(store, s)
		}
	}
}

func (m *mirror) shorten(store int, s attention.Segment) {
	v := &m.valid[store][s.Block]
	*v = min(*v, uint8(s.Pos%kvcache.BlockTokens))
}

// wrote notes that both caches have the rows of a batch.
func (m *mirror) wrote(spans []kvcache.Span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setWritten(spans)
}

func (m *mirror) setWritten(spans []kvcache.Span) {
	for store := range m.valid {
		for _, s := range attention.Segments(spans, store) {
			m.valid[store][s.Block] = uint8(s.Pos%kvcache.BlockTokens + s.N)
		}
	}
}

// staleBlock is a block of a store that a forward reads and the device does not have.
type staleBlock struct {
	store int
	block kvcache.BlockID
}

// begin prepares a forward on the device: it returns the blocks to copy there, and notes that the
// positions of the batch will be overwritten. Blocks of the rows that are coming from the cores are
// not returned.
func (m *mirror) begin(spans, coming []kvcache.Span) (stale []staleBlock) {
	if m.shared {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setWritten(coming)
	for store, kind := range m.layers.Kinds {
		written := map[kvcache.BlockID]int{} // the positions before this one are read
		for _, s := range attention.Segments(spans, store) {
			written[s.Block] = s.Pos % kvcache.BlockTokens
		}
		for _, q := range attention.Sequences(kind, store, spans) {
			for i, block := range q.Table {
				need := min(kvcache.BlockTokens, q.Pos-i*kvcache.BlockTokens)
				if at, ok := written[block]; ok {
					need = min(need, at)
				}
				if need > int(m.valid[store][block]) {
					stale = append(stale, staleBlock{store, block})
					m.valid[store][block] = uint8(need)
				}
			}
		}
		for _, s := range attention.Segments(spans, store) {
			m.shorten(store, s)
		}
	}
	return stale
}

// forget notes that the device has none of the blocks.
func (m *mirror) forget(stale []staleBlock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range stale {
		m.valid[b.store][b.block] = 0
	}
}
