package kvcache

import "slices"

// Span describes the rows of one sequence in a forward. Rows Row to Row+Rows-1 of the batch are at
// positions Pos to Pos+Rows-1 of the sequence.
type Span struct {
	Seq    int // slot of the sequence, stable while it is resident
	Row    int // first row in the batch
	Rows   int // number of rows, at least 1
	Pos    int // position of the first row
	Draft  int // rows at the end that are a draft, of which the last ones may be rejected
	Tables Tables
	// Tables cover at least positions 0 to Pos+Rows-1. They alias memory of the cache and are valid
	// only during the forward.
}

// Batch is the input of one forward: either one prefill chunk of one request, or a decode batch, in
// which a span has more than one row if it verifies a draft.
type Batch struct {
	Tokens    []int32 // one token id per row
	Spans     []Span  // rows in ascending order, no gaps
	LogitRows []int32 // rows whose logits are wanted, ascending
	Prefill   bool
}

// AddSpan appends a span with the block tables of s. It reuses the batch's table memory after
// Reset.
func (b *Batch) AddSpan(s *Sequence, span Span) {
	n := len(b.Spans)
	b.Spans = slices.Grow(b.Spans, 1)[:n+1]
	span.Tables = s.Tables(b.Spans[n].Tables[:0])
	b.Spans[n] = span
}

// Reset removes all rows from the batch and retains its memory for reuse.
func (b *Batch) Reset() {
	b.Tokens, b.Spans, b.LogitRows, b.Prefill = b.Tokens[:0], b.Spans[:0], b.LogitRows[:0], false
}

// Rows returns the number of rows of the batch.
func (b *Batch) Rows() int { return len(b.Tokens) }
