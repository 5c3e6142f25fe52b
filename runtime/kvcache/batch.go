package kvcache

import "slices"

// Span is the part of one sequence that takes part in a forward: Rows rows of
// the batch beginning at row Row, which stand at positions Pos, Pos+1, ... of
// the sequence.
type Span struct {
	Seq    int // slot of the sequence, stable while it is resident
	Row    int // first row in the batch
	Rows   int // number of rows, at least 1
	Pos    int // position of the first row
	Tables Tables
	// Tables cover at least the positions 0 .. Pos+Rows-1. They are the cache's
	// own memory: read them during the forward, keep nothing of them afterwards.
}

// Batch is the input of one forward: one prefill chunk of one request, or one
// decode batch in which every span has one row; never both.
type Batch struct {
	Tokens    []int32 // one token id a row
	Spans     []Span  // rows in ascending order, no gaps
	LogitRows []int32 // rows whose logits are wanted, ascending
	Prefill   bool
}

// AddSpan adds rows of a sequence with its tables, which the batch keeps memory for.
func (b *Batch) AddSpan(s *Sequence, span Span) {
	n := len(b.Spans)
	b.Spans = slices.Grow(b.Spans, 1)[:n+1]
	span.Tables = s.Tables(b.Spans[n].Tables[:0])
	b.Spans[n] = span
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Tokens, b.Spans, b.LogitRows, b.Prefill = b.Tokens[:0], b.Spans[:0], b.LogitRows[:0], false
}

// Rows is the number of rows of the batch.
func (b *Batch) Rows() int { return len(b.Tokens) }
