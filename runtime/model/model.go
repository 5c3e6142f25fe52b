package model

import (
	"slices"

	"sandwich/runtime/gguf"
)

// Dims holds the sizes of a decoder, in elements.
type Dims struct {
	Hidden  int // width of the residual stream
	Layers  int
	Heads   int
	KVHeads int
	HeadDim int
	FFN     int
	Vocab   int
	Context int // maximum positions of a sequence
}

// Weight is one matrix of the model, W[N,K] in the row-major order of the file, or a stack of such
// matrices, one per expert. In the shard of a rank it is a part of the matrix.
type Weight struct {
	Name      string       // of the tensor
	Role      string       // q k v o gate up down router head; shared_gate shared_up shared_down with experts
	Layer     int          // -1 for the head
	Tensor    *gguf.Tensor // nil until it is loaded
	N, K      int
	Stack     int        // number of matrices; 0 means 1
	Row, Col  int        // first row and column in the tensor's matrices
	Cut       bool       // the matrix is divided among ranks
	Of        [2]int     // N and K of the whole matrix
	Rows      int        // rows of each of the tensor's matrices; more than N if products share the tensor
	RowRanges []RowRange // rows of the tensor, if they are not consecutive from Row on
	// Scale [matrices] holds the factor of each matrix's products, applied before a bias is added
	// (NVFP4's second scale, and that of Gemma 4's experts); or nil.
	Scale *Vector
}

// RowRange selects N rows of a tensor: groups of Run consecutive rows that begin every Step rows,
// the first at Row.
type RowRange struct{ Row, Run, Step, N int }

// TensorRow returns the row of the tensor's matrix for row n of the product.
func (w *Weight) TensorRow(n int) int {
	for _, p := range w.RowRanges {
		if n < p.N {
			return p.Row + n/p.Run*p.Step + n%p.Run
		}
		n -= p.N
	}
	return w.Row + n
}

// Matrices returns the number of matrices in the stack.
func (w *Weight) Matrices() int { return max(1, w.Stack) }

// Model is a model as a flat list of ops over weights. Config.Model makes one without values from a
// configuration; Load makes one whose weights point into a file. It is immutable afterwards.
type Model struct {
	Arch    string
	Name    string
	Dims    Dims
	Experts Experts // zero in a dense model
	Eps     float32
	Tied    bool         // the head is the embedding
	Outputs int          // width of BufLogits: the vocabulary, or the output row of a pooled model
	Pooling Pooling      // of a model with one output row per text
	Scores  bool         // the output row has scores and is not a vector
	Embed   *gguf.Tensor // [vocab, hidden]
	Weights []Weight
	Ops     []Op
}

// Ropes returns the rotations of the model's layers without duplicates, in the order of first use.
func (m *Model) Ropes() (list []*Rope) {
	for i := range m.Ops {
		if r := m.Ops[i].Rope; r != nil && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// Width returns the number of float32 elements in a row of a buffer, 0 if the model does not use
// it.
func (m *Model) Width(b Buf) int {
	switch b {
	case BufX, BufH, BufY:
		return m.Dims.Hidden
	case BufLogits:
		return m.Outputs
	}
	most := 0
	for i := range m.Ops {
		op := &m.Ops[i]
		switch {
		case b == BufAtt && op.Kind == OpAttention:
			most = max(most, op.Heads.Q*op.Heads.Dim)
		case b == BufAtt && op.Kind == OpConv && op.Delta == nil:
			most = max(most, op.Conv.N)
		case b == BufAtt && op.Kind == OpDelta:
			most = max(most, op.Delta.ValueHeads*op.Delta.ValueDim)
		case b == BufV && op.KeysAsValues, (b == BufK || b == BufV) && op.Kind == OpLatent:
			most = max(most, op.Heads.KV*op.Heads.Dim)
		case b == BufQ && op.Kind == OpLatent:
			most = max(most, op.Heads.Q*op.Heads.Dim)
		case op.Kind == OpHeads && b == op.Outs[0]:
			most = max(most, op.Heads.Q*op.OutStep)
		}
		for j, out := range op.Outs {
			if out == b && len(op.W) > 0 {
				most = max(most, m.Weights[op.W[j]].N)
			}
		}
	}
	return most
}

// RowsOf returns the number of rows of a buffer in a forward with the given number of rows. Buffers
// of experts have one row per row and expert used. It does not apply to BufLogits.
func (m *Model) RowsOf(b Buf, rows int) int {
	if m.Experts.Count > 0 && (b == BufGate || b == BufExpert) {
		return rows * m.Experts.Used
	}
	return rows
}
