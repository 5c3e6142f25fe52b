package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/model"
)

// paths is the number of compute paths.
const paths = 1 + int(microkernel.ComputeBF16)

// RoundedK is the longest row of activations that each compute path rounds for itself, by Compute.
type RoundedK [paths]int

// count takes a weight of k into account.
func (r *RoundedK) count(c microkernel.Compute, k int) {
	if c != microkernel.ComputeF32 {
		r[c] = max(r[c], k)
	}
}

// roundedRows are activations in the form that a compute path reads: rows of microkernel.ActQ8
// blocks for int8, of bfloat16 for bf16.
type roundedRows struct {
	compute microkernel.Compute
	base    unsafe.Pointer
	stride  int // bytes between rows
}

// RoundedRowBytes is the distance in bytes between rows of k activations in the form of a compute
// path.
func RoundedRowBytes(c microkernel.Compute, k int) int { return 4 * RowStride((c.ActRowBytes(k)+3)/4) }

// row points at element k of row r; k is where a block or a pair begins.
func (q *roundedRows) row(r, k int) unsafe.Pointer {
	return unsafe.Add(q.base, r*q.stride+q.compute.ActRowBytes(k))
}

// roundings are the compute paths of an op's weights that round its input.
func (g *group) roundings(op *model.Op) (need [paths]bool, any bool) {
	for _, wi := range op.W {
		if p := g.rank.weights.At(wi); p.roundsInput() {
			need[p.Compute], any = true, true
		}
	}
	return need, any
}

// round makes of the m rows that an op reads what its weights want, if any does, and waits until
// all of it is there. A unit is a piece of a row, so that the one row of a decode step is shared
// too; pieces end where blocks of 32 do, which makes them independent.
func (e *Executor) round(g *group, op *model.Op, m int) {
	need, any := g.roundings(op)
	if !any {
		return
	}
	const piece = 1024
	k := g.shard.model.Weights[op.W[0]].K
	pieces := (k + piece - 1) / piece
	for lo, hi, ok := g.nextRounded(m*pieces, 2); ok; lo, hi, ok = g.nextRounded(m*pieces, 2) {
		for u := lo; u < hi; u++ {
			r, from := u/pieces, u%pieces*piece
			for c, wanted := range need {
				if rows := &g.bufs.rounded[c]; wanted {
					e.vec.RoundRow(rows.compute, addElems(g.row(op.In, r), from), min(piece, k-from), rows.row(r, from))
				}
			}
		}
	}
	g.barrier()
}
