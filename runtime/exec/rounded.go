package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// paths is the number of compute paths.
const paths = int(microkernel.Computes)

// roundedK is the longest row of activations that each compute path rounds for itself, by Compute.
type roundedK [paths]int

// count takes a weight of k into account.
func (r *roundedK) count(c microkernel.Compute, k int) {
	if c != microkernel.ComputeF32 {
		r[c] = max(r[c], k)
	}
}

// roundedRows are activations in the form that a compute path reads: rows of microkernel.ActQ8
// blocks for both paths of integers, of bfloat16 for bf16.
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

// strips are the pieces in which rows of activations are rounded, so that the one row of a decode
// step is shared too. They end where blocks of 32 do, which makes them independent.
type strips struct {
	each   int // of a row
	chunk  int // that a worker takes at a time
	step   int // elements of the row between them
	pitch  int // elements of the rounded row between them
	length int // of one, at most
	k      int // of all of them in the rounded row, up to which the last one goes
}

// longestStrip is that of a row that is rounded as a whole.
const longestStrip = 1024

// stripsOf are the strips of a row that an op with weights reads.
func stripsOf(m *model.Model, op *model.Op) strips {
	k := m.Weights[op.W[0]].K
	if op.Kind == model.OpHeads { // a head each
		pitch := roundedHead(k)
		return strips{each: op.Heads.Q, chunk: op.Heads.Q, step: op.InStep, pitch: pitch, length: k,
			k: op.Heads.Q * pitch}
	}
	return strips{each: (k + longestStrip - 1) / longestStrip, chunk: 2, step: longestStrip, pitch: longestStrip,
		length: min(k, longestStrip), k: k}
}

// bytes is the memory for a strip, in whole cache lines.
func (s *strips) bytes(c microkernel.Compute) int {
	return (c.ActRowBytes(s.length) + cacheLine - 1) / cacheLine * cacheLine
}

// strip is strip number u of a buffer's rows, and where the compute path has it.
func (g *group) strip(in model.Buf, s *strips, u int, c microkernel.Compute) (from *float32, n int, to unsafe.Pointer) {
	r, i := u/s.each, u%s.each
	return addElems(g.row(in, r), i*s.step), min(s.length, s.k-i*s.pitch), g.bufs.rounded[c].row(r, i*s.pitch)
}

// round makes of the rows that an op reads what its weights want, and tells whether any does: then
// all of it has to be there before the op begins.
func (e *Executor) round(g *group, op *model.Op, c portion) (any bool) {
	multiplies := op.Kind == model.OpMatMul || op.Kind == model.OpExperts || op.Kind == model.OpHeads
	if !multiplies || c.at > 0 { // the first of its steps does so for all of them
		return false
	}
	need, any := g.roundings(op)
	if !any {
		return false
	}
	m, s := e.inputRows(op), stripsOf(g.shard.model, op)
	total := m * s.each
	for lo, hi, ok := g.nextRounded(total, s.chunk); ok; lo, hi, ok = g.nextRounded(total, s.chunk) {
		e.roundStrips(g, op.In, &s, &need, lo, hi)
	}
	return true
}

// inputRows is how many rows an op that multiplies reads.
func (e *Executor) inputRows(op *model.Op) int {
	switch {
	case op.Kind == model.OpExperts:
		return e.rows * e.bufs.routes.used
	case op.Wanted:
		return len(e.batch.LogitRows)
	}
	return e.rows
}

// roundStrips is a worker's chunk of that.
func (e *Executor) roundStrips(g *group, in model.Buf, s *strips, need *[paths]bool, lo, hi int) {
	own, all := e.scratch[g.w.Index()].apart, 0
	for c, wanted := range need {
		if wanted {
			all += (hi - lo) * s.bytes(microkernel.Compute(c))
		}
	}
	away := g.w.Apart() && all <= e.apartBytes
	if away {
		offer(g.w)
	}
	at := own
	for u := lo; u < hi; u++ {
		for c, wanted := range need {
			if !wanted {
				continue
			}
			path := microkernel.Compute(c)
			from, n, to := g.strip(in, s, u, path)
			if away {
				to, at = at, unsafe.Add(at, s.bytes(path))
			}
			g.vec.QuantizeRow(path, from, n, to)
		}
	}
	if !away {
		return
	}
	commit(g.w)
	at = own
	for u := lo; u < hi; u++ {
		for c, wanted := range need {
			if wanted {
				path := microkernel.Compute(c)
				_, n, to := g.strip(in, s, u, path)
				bytes := path.ActRowBytes(n)
				copy(unsafe.Slice((*byte)(to), bytes), unsafe.Slice((*byte)(at), bytes))
				at = unsafe.Add(at, s.bytes(path))
			}
		}
	}
}
