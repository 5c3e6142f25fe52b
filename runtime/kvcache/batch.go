package kvcache

// BlockTokens is the number of positions in one block. It equals the attention
// block of rule 6, so that one block is one term of the attention merge.
const BlockTokens = 64

// BlockID names one physical block, 0 <= id < Cache.Blocks().
type BlockID int32

// Span is the part of one sequence that takes part in a forward: Rows rows of
// the batch beginning at row Row, which stand at positions Pos, Pos+1, ... of
// the sequence.
type Span struct {
	Seq   int // slot of the sequence, stable while it is resident
	Row   int // first row in the batch
	Rows  int // number of rows, at least 1
	Pos   int // position of the first row
	Table []BlockID
	// Table covers at least the positions 0 .. Pos+Rows-1. It is the cache's
	// own memory: read it during the forward, keep nothing of it afterwards.
}

// Batch is the input of one forward: one prefill chunk of one request, or one
// decode batch in which every span has one row; never both.
type Batch struct {
	Tokens    []int32 // one token id a row
	Spans     []Span  // rows in ascending order, no gaps
	LogitRows []int32 // rows whose logits are wanted, ascending
	Prefill   bool
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Tokens, b.Spans, b.LogitRows, b.Prefill = b.Tokens[:0], b.Spans[:0], b.LogitRows[:0], false
}

// Rows is the number of rows of the batch.
func (b *Batch) Rows() int { return len(b.Tokens) }

// BlocksFor is the number of blocks that hold n positions.
func BlocksFor(n int) int { return (n + BlockTokens - 1) / BlockTokens }
