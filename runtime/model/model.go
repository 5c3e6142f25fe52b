package model

import (
	"slices"

	"sandwich/runtime/gguf"
)

// Dims are the sizes of a decoder, in elements.
type Dims struct {
	Hidden  int // width of the residual stream
	Layers  int
	Heads   int
	KVHeads int
	HeadDim int
	FFN     int
	Vocab   int
	Context int // positions the model was trained for
}

// Weight is one matrix of the model, W[N,K] row by row as the file stores it, or a stack of such
// matrices, one for each expert; in a rank's share of the model a part of it.
type Weight struct {
	Name     string       // of the tensor
	Role     string       // q k v o gate up down router head; shared_gate shared_up shared_down beside experts
	Layer    int          // -1 for the head
	Tensor   *gguf.Tensor // nil until it is loaded
	N, K     int
	Stack    int    // matrices; 0 and 1 are one
	Row, Col int    // of the tensor's matrices, where this begins
	Cut      bool   // the ranks each have their part
	Of       [2]int // N and K of the whole product, whatever a rank has of it
	Rows     int    // of each of the tensor's matrices: of several products where they are one tensor
	Picks    []Pick // which of those rows these are, where they do not follow each other from Row on
	// [matrices] what products of each are multiplied by, before a bias is added (NVFP4's second
	// scale, and that of Gemma 4's experts); or nil
	Scale *Vector
}

// Pick is N rows of a tensor: runs of Run rows, Step rows from one to the next, the first at Row.
type Pick struct{ Row, Run, Step, N int }

// TensorRow is the row of the tensor's matrix that row n of the product is.
func (w *Weight) TensorRow(n int) int {
	for _, p := range w.Picks {
		if n < p.N {
			return p.Row + n/p.Run*p.Step + n%p.Run
		}
		n -= p.N
	}
	return w.Row + n
}

// Matrices is the number of matrices in the stack.
func (w *Weight) Matrices() int { return max(1, w.Stack) }

// Model is a configuration written out by its architecture as a flat list of ops over weights that
// still lie in the file. It executes nothing: exec packs the weights and runs the ops.
// Config.Model makes it from sizes alone, Load binds it to a file; it is immutable afterwards.
type Model struct {
	Arch    string
	Name    string
	Dims    Dims
	Experts Experts // zero in a dense model
	Eps     float32
	Tied    bool         // the head is the embedding
	Outputs int          // width of BufLogits: the vocabulary, or what a pooled model answers with
	Pooling Pooling      // of a model that makes one row of a text
	Scores  bool         // that row is scores, and no vector
	Embed   *gguf.Tensor // [vocab, hidden]
	Weights []Weight
	Ops     []Op
}

// Ropes lists the rotations of the model's layers, each once, in the order of first use.
func (m *Model) Ropes() (list []*Rope) {
	for i := range m.Ops {
		if r := m.Ops[i].Rope; r != nil && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// Width returns how many float32 elements one row of a buffer has, 0 for a buffer that the model
// does not use.
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
		case b == BufV && op.KeyVal, (b == BufK || b == BufV) && op.Kind == OpLatent:
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

// RowsOf returns how many rows a buffer has in a forward of the given number of rows: what experts
// work on has one for each row and expert used. It does not apply to BufLogits.
func (m *Model) RowsOf(b Buf, rows int) int {
	if m.Experts.Count > 0 && (b == BufGate || b == BufExpert) {
		return rows * m.Experts.Used
	}
	return rows
}
