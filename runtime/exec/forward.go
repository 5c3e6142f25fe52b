package exec

import (
	"fmt"
	"slices"
	"sync/atomic"

	"sandwich/runtime/allreduce"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// forward is the forward in progress. All of it but halt, next and asked is set before the workers
// start.
type forward struct {
	batch *kvcache.Batch
	rows  int
	gate  Gate
	from  int          // first step
	end   int          // number of ops to run: without wanted logits it ends before the head
	next  int          // what Run returns
	asked int          // the step up to which the gate was asked
	halt  atomic.Int64 // the step before which the gate halted the forward; 0: none
}

// begin checks a batch and prepares a forward from a step on.
func (e *Executor) begin(b *kvcache.Batch, from int, gate Gate) error {
	if err := e.checkBatch(b); err != nil {
		return err
	}
	f := &e.forward
	f.batch, f.rows, f.gate = b, b.Rows(), gate
	f.from, f.next, f.asked = from, e.Steps(), from
	f.halt.Store(0)
	f.end = len(e.ops)
	if len(b.LogitRows) == 0 {
		f.end = slices.IndexFunc(e.model.Ops, func(op model.Op) bool {
			return op.Kind == model.OpGather || op.Kind == model.OpPool
		})
	}
	e.throughput.Begin()
	e.layOut(b)
	if e.groups != nil {
		e.setPartials()
	}
	return nil
}

// checkBatch refuses a batch that does not fit the buffers or the model.
func (e *Executor) checkBatch(b *kvcache.Batch) error {
	if b.Rows() == 0 || b.Rows() > e.bufs.rows {
		return fmt.Errorf("a forward of %d tokens does not fit buffers for %d", b.Rows(), e.bufs.rows)
	}
	if len(b.LogitRows) > e.bufs.logitRows {
		return fmt.Errorf("logits of %d rows do not fit buffers for %d", len(b.LogitRows), e.bufs.logitRows)
	}
	for _, token := range b.Tokens {
		if token < 0 || int(token) >= e.vocab {
			return fmt.Errorf("token %d is outside the vocabulary of %d", token, e.vocab)
		}
	}
	for i := range b.Spans {
		s := &b.Spans[i]
		if end := s.Pos + s.Rows; end > e.positions {
			return fmt.Errorf("position %d is beyond the %d that the model has learned", end-1, e.positions)
		}
	}
	return nil
}

// layOut prepares all ops for a batch.
func (e *Executor) layOut(b *kvcache.Batch) {
	e.rowwise.Begin(b, e.bufs.ranks, &e.bufs.angles)
	e.attention.Begin(b.Spans, &e.bufs.angles)
	e.state.Begin(b.Rows(), b.Spans)
	for r := range e.ranks {
		e.ranks[r].attention.Begin(b.Spans)
	}
}

// setPartials makes the activations in use the summands of the gathers.
func (e *Executor) setPartials() {
	e.partials.Rows = e.forward.rows
	for r := range e.partials.Partials {
		a := &e.bufs.ranks[r]
		e.partials.Partials[r] = allreduce.Matrix{Base: a.Base[model.BufY], Stride: a.Stride[model.BufY]}
	}
	e.partials.Into = e.partials.Partials[0]
}

// Prewarm names the executor whose forward most likely follows, such as decode after a prompt; nil
// for none. Worker 0 lays out a batch of one row for it while the others finish the last op. After
// a prompt the code and data of the layout are not cached, and the hot switch would otherwise wait
// for about twenty cache misses. No Run may be in progress.
func (e *Executor) Prewarm(next *Executor) {
	if e.successor = next; next != nil && len(next.prewarmBatch.Spans) == 0 {
		next.prewarmBatch = oneRow(len(next.layers.Kinds))
	}
}

// oneRow returns a batch of one row: the first of a sequence in the first block of each store.
func oneRow(stores int) (b kvcache.Batch) {
	b.Tokens = []int32{0}
	tables := make(kvcache.Tables, stores)
	for i := range tables {
		tables[i] = []kvcache.BlockID{0, 0, kvcache.NoState} // of states: from the first block to the first
	}
	b.Spans = []kvcache.Span{{Rows: 1, Tables: tables}}
	return b
}

// prewarmLayout lays out the batch of Prewarm; the next forward replaces it.
func (e *Executor) prewarmLayout() {
	if e != nil {
		e.layOut(&e.prewarmBatch)
	}
}
