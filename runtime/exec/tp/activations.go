package tp

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Rows are rows of float32, Stride elements apart.
type Rows struct {
	Base   *float32
	Stride int
}

// At returns the address of an element.
func (r Rows) At(row, col int) *float32 { return raw.Add(r.Base, row*r.Stride+col) }

// Activations are the buffers of a forward as one rank sees them: its own, and those that all ranks
// share, which are in the memory of the first rank.
type Activations struct {
	Base      [model.NumBufs]unsafe.Pointer
	Stride    [model.NumBufs]int // elements between rows
	Quantized [Paths]QuantizedRows
}

// Row returns the address of the first element of a row.
func (a *Activations) Row(buf model.Buf, r int) *float32 {
	return (*float32)(unsafe.Add(a.Base[buf], 4*r*a.Stride[buf]))
}

// Rows returns a buffer as rows.
func (a *Activations) Rows(buf model.Buf) Rows { return Rows{(*float32)(a.Base[buf]), a.Stride[buf]} }

// Paths is the number of compute paths.
const Paths = int(microkernel.Computes)

// QuantizedRows are activations in the form that a compute path reads: rows of microkernel.ActQ8
// blocks for the integer paths, of bfloat16 for bf16.
type QuantizedRows struct {
	Compute microkernel.Compute
	Base    unsafe.Pointer
	Stride  int // bytes between rows
}

// At returns the address of element k of row r. k is the start of a block or of a pair.
func (q *QuantizedRows) At(r, k int) unsafe.Pointer {
	return unsafe.Add(q.Base, r*q.Stride+q.Compute.ActRowBytes(k))
}

// QuantizedRowBytes returns the distance in bytes between rows of k activations in the form of a
// compute path.
func QuantizedRowBytes(c microkernel.Compute, k int) int {
	return 4 * mem.RowStride((c.ActRowBytes(k)+3)/4)
}

// QuantizedK is the longest row that each compute path quantizes, by microkernel.Compute.
type QuantizedK [Paths]int

// Add takes a weight of k columns into account.
func (q *QuantizedK) Add(c microkernel.Compute, k int) {
	if c != microkernel.ComputeF32 {
		q[c] = max(q[c], k)
	}
}

// AddHeads takes the rows of products of single heads into account. computes returns the compute
// paths that weight i may have.
func (q *QuantizedK) AddHeads(m *model.Model, computes func(i int) []microkernel.Compute) {
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Kind != model.OpHeads || len(op.W) == 0 {
			continue
		}
		for _, c := range computes(op.W[0]) {
			q.Add(c, op.Heads.Q*QuantizedHead(m.Weights[op.W[0]].K))
		}
	}
}

// QuantizedHead returns the elements between heads in quantized rows: entire blocks of 32.
func QuantizedHead(k int) int { return (k + 31) / 32 * 32 }
