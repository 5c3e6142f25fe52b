package model

import (
	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// SharedRole is the prefix of the roles of feed-forward matrices that apply to every row in a model
// with experts.
const SharedRole = "shared_"

// EmbedTensor is the name of the embedding, which is also the head of a tied model. HeadTensor is
// the name of the head of other models.
const (
	EmbedTensor = "token_embd.weight"
	HeadTensor  = "output.weight"
)

// Outside is the layer of ops before and after the layers.
const Outside = -1

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

// Table is a matrix [tokens, N] whose rows are looked up.
type Table struct {
	Name   string // of the tensor
	N      int
	Tensor *gguf.Tensor // nil until it is loaded
}

// Vector is a small float32 parameter: a norm weight or a bias.
type Vector struct {
	Name     string    // of the tensor
	N        int       // elements, or those of each expert
	At, Of   int       // index of the first element in the tensor, and elements of the tensor; Of 0 means N
	Stack    int       // number of experts; 0 if it does not belong to experts
	Optional bool      // files may not have it
	Expected bool      // an optional vector that synthetic models have, and all layers or none
	Times    float32   // factor of the file's values; 0: 1
	Data     []float32 // [N], [Stack][N]; nil until it is loaded, unless the configuration has the values
}

// DenseNames lists the products after pooling in order (modules 2 and 3 of sentence-transformers).
var DenseNames = [...]string{"dense_2", "dense_3"}

// rows returns a range of the elements of a vector, per expert if it belongs to experts.
func (v *Vector) rows(of plans.Span) *Vector {
	out := &Vector{Name: v.Name, N: of.Len(), Stack: v.Stack}
	if v.Data == nil { // a model without values
		return out
	}
	for i := range max(1, v.Stack) {
		out.Data = append(out.Data, v.Data[i*v.N:][of.Lo:of.Hi]...)
	}
	return out
}
