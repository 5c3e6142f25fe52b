package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// paths is the number of compute paths.
const paths = 1 + int(microkernel.ComputeBF16)

// roundedK is the longest row of activations that each compute path rounds for itself, by Compute.
type roundedK [paths]int

// count takes a weight of k into account.
func (r *roundedK) count(c microkernel.Compute, k int) {
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
func RoundedRowBytes(c microkernel.Compute, k int) int {
	return 4 * mem.RowStride((c.ActRowBytes(k)+3)/4)
}

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
// all of it is there. A unit is a strip of a row, so that the one row of a decode step is shared
// too; strips end where blocks of 32 do, which makes them independent.
func (e *Executor) round(g *group, op *model.Op, m int) {
	need, any := g.roundings(op)
	if !any {
		return
	}
	const strip = 1024
	k := g.shard.model.Weights[op.W[0]].K
	strips := (k + strip - 1) / strip
	for lo, hi, ok := g.nextRounded(m*strips, 2); ok; lo, hi, ok = g.nextRounded(m*strips, 2) {
		for u := lo; u < hi; u++ {
			r, from := u/strips, u%strips*strip
			for c, wanted := range need {
				if rows := &g.bufs.rounded[c]; wanted {
					g.vec.RoundRow(rows.compute, addElems(g.row(op.In, r), from), min(strip, k-from), rows.row(r, from))
				}
			}
		}
	}
	g.barrier()
}
