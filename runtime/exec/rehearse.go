package exec

import "sandwich/runtime/kvcache"

// Expect names the executor whose forward most likely follows this one's: decode behind a prompt.
// Worker 0 lays a batch of one row out on it while the others end the last op, since behind a
// prompt all that laying out touches, code and data, is out of the caches: the hot switch would
// wait for some twenty places in memory one by one. nil for none. Not while a Run is under way.
func (e *Executor) Expect(next *Executor) {
	if e.heir = next; next != nil && len(next.rehearsal.Spans) == 0 {
		next.rehearsal = rehearsalOf(len(next.runs))
	}
}

// rehearsalOf is a batch of one row, the first of a sequence in the first block of each store.
func rehearsalOf(stores int) (b kvcache.Batch) {
	b.Tokens = []int32{0}
	tables := make(kvcache.Tables, stores)
	for i := range tables {
		tables[i] = []kvcache.BlockID{0, 0} // where it holds states: from the first and to the first
	}
	b.Spans = []kvcache.Span{{Rows: 1, Tables: tables}}
	return b
}

// rehearse lays the rehearsal out; the next forward lays its own out in its place.
func (e *Executor) rehearse() {
	if e != nil {
		e.layOut(&e.rehearsal)
	}
}
