// Package allreduce sums the partial results of tensor-parallel ranks without a barrier. Package
// exec serves with it; calibrate and the benchmarks time it.
package allreduce

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/pool"
)

// Sum adds the partial results of tensor-parallel ranks: each rank has a partial matrix [rows,
// width], and all ranks read the sum (Sandwich, section 7). Each rank starts at a different offset,
// the size of chunks follows the size of the matrix, workers wait only for the chunks that they
// need, and small sums use few threads.
//
// Each worker calls Publish for every rank that it computes for, then Finish, without a barrier
// between them:
//
//   - Publish raises a "ready" flag per chunk after all workers of the rank have called it.
//   - Finish distributes the chunks: first those of the worker's own rank, then the remaining ones
//     of other ranks. A worker that takes a chunk waits for its ready flags, adds the partials in
//     ascending rank order, ((p0+p1)+p2)+..., and raises the chunk's "done" flag. A sum of a single
//     chunk is computed by the last worker that publishes, without waiting.
//   - Finish returns when every chunk is done. All workers have published by then, so it acts as a
//     global barrier: writes of any worker before its Publish are visible after Finish, and
//     pool.Counters may be used again.
//
// The bits of the result depend neither on the chunks nor on the workers that add them. Buffers may
// be reused as follows: a partial has no reader after Finish has returned on any worker. The sum
// may be read until the reader's next Publish, or only in after if it replaces Partials[0]. A rank
// therefore never overwrites data that another rank still reads, and partials need no second
// buffer.
//
// In preemption-tolerant mode, package exec sums by loops of pool.Worker.Next instead, since here a
// chunk of a lost worker would never be done. A sum that is in progress when the mode starts waits
// for the workers of its chunks.
//
// Flags contain the number of the run and of the sum in it, so that they need no reset, also after
// a run that ended by a panic. A Sum is used by one run of its pool at a time. It does not
// allocate.
type Sum struct {
	vecs    []*microkernel.Vec // by class of worker
	ranks   int
	ready   *pool.Flags // [rank][chunk]: the rank's partial is written
	done    *pool.Flags // [chunk]: the sum is written
	written []tally     // [rank][chunk]: workers of the rank that published it
	summed  []tally     // [chunk]: pieces of it that are added up
	cursor  []lineTally // [rank]: units of the rank's region handed out
	arrived lineTally   // ranks that published a sum of one chunk
	workers []reducer   // by worker index
}

// reducer is the state of one worker. Only that worker uses it.
type reducer struct {
	run, sums uint64     // sums finished in this run
	cutting   sumCut     // of the current sum
	last      bool       // this worker published its part of the current sum, of one chunk, last
	partials  []*float32 // scratch: where the partials of a row begin
	_         [cacheLine]byte
}

// Job describes one sum. All workers pass equal Jobs to Publish and Finish.
type Job struct {
	Rows, Width int
	Partials    []Matrix // by rank; none overlaps another
	Into        Matrix   // the sum; Partials[0] to add in place, else it overlaps none of them
}

// Matrix is a matrix of float32 rows, Stride elements apart.
type Matrix struct {
	Base   unsafe.Pointer
	Stride int
}

func (m Matrix) at(row, col int) *float32 {
	return (*float32)(unsafe.Add(m.Base, 4*(row*m.Stride+col)))
}

// New returns a Sum over the given number of ranks for the workers of p. vecs has the row
// operations of each worker class. New must not be called during a run of p.
func New(p *pool.Pool, vecs []*microkernel.Vec, ranks int) *Sum {
	a := &Sum{
		vecs: vecs, ranks: ranks,
		ready: p.NewFlags(ranks * maxReduceChunks), done: p.NewFlags(maxReduceChunks),
		written: make([]tally, ranks*maxReduceChunks), summed: make([]tally, maxReduceChunks),
		cursor: make([]lineTally, ranks), workers: make([]reducer, p.Size()),
	}
	for i := range a.workers {
		a.workers[i].partials = make([]*float32, ranks)
	}
	return a
}

// Close removes the sum from a pool that outlives it. No run may use it then or later.
func (a *Sum) Close(p *pool.Pool) { p.DropFlags(a.ready, a.done) }

// Publish records that this worker has written its part of a rank's partial. size is the number of
// workers that publish for this rank.
func (a *Sum) Publish(w *pool.Worker, rank, size int, o *Job) {
	r := &a.workers[w.Index()]
	number := r.number(w)
	for chunk := range r.cut(w, o).chunks {
		a.publish(r, rank, size, number, chunk)
	}
}

// publish implements Publish for one chunk.
func (a *Sum) publish(r *reducer, rank, size int, number uint64, chunk int) {
	i := rank*maxReduceChunks + chunk
	if size > 1 && a.written[i].add(number) < size-1 {
		return
	}
	if r.cutting.units == 1 {
		r.last = a.arrived.add(number) == a.ranks-1
		return
	}
	a.ready.Raise(i, number)
}

// Finish adds chunks, beginning with those of rank home, and returns when all chunks are done.
// after, if it is not nil, is called once for each range of finished rows, on any worker, before
// Finish returns on any. next is the step of a preemption-tolerant run that follows the sum (-1:
// none); it runs in preemption-tolerant mode if a worker may be lost.
func (a *Sum) Finish(w *pool.Worker, home int, o *Job, next int, after func(row0, row1 int)) {
	r := &a.workers[w.Index()]
	number := r.number(w)
	c := r.cut(w, o)
	if c.units == 1 {
		if r.last {
			a.sum(w, r, o, 0, o.Rows, 0, o.Width)
			a.finished(w, c, 0, number, next, after)
		}
	} else {
		for i := range a.ranks {
			a.region(w, r, o, (home+i)%a.ranks, number, next, after)
		}
	}
	for chunk := range c.chunks {
		a.done.Wait(w, chunk, number)
	}
	r.sums++
	r.last = false
	w.Met()
}

// region adds the units of one rank's region that no worker has taken.
func (a *Sum) region(w *pool.Worker, r *reducer, o *Job, rank int, number uint64, next int,
	after func(row0, row1 int)) {
	c := &r.cutting
	first, end := pool.Split(c.units, a.ranks, rank, 1)
	for {
		n := a.cursor[rank].add(number)
		if n < 0 || first+n >= end {
			return
		}
		chunk, piece := (first+n)/c.pieces, (first+n)%c.pieces
		for rank := range a.ranks {
			a.ready.Wait(w, rank*maxReduceChunks+chunk, number)
		}
		row0, row1 := c.rowsOf(chunk)
		col0, col1 := c.columns(piece)
		a.sum(w, r, o, row0, row1, col0, col1)
		if c.pieces == 1 || a.summed[chunk].add(number) == c.pieces-1 {
			a.finished(w, c, chunk, number, next, after)
		}
	}
}

// sum adds the partials of a range of rows and columns.
func (a *Sum) sum(w *pool.Worker, r *reducer, o *Job, row0, row1, col0, col1 int) {
	vec := a.vecs[w.Class()]
	for row := row0; row < row1; row++ {
		for i := range o.Partials {
			r.partials[i] = o.Partials[i].at(row, col0)
		}
		vec.Sum(o.Into.at(row, col0), r.partials, col1-col0)
	}
}

// finished ends a chunk. When the first chunk is finished, all workers have published it and none
// has returned from Finish.
func (a *Sum) finished(w *pool.Worker, c *sumCut, chunk int, number uint64, next int, after func(row0, row1 int)) {
	if after != nil {
		after(c.rowsOf(chunk))
	}
	if chunk == 0 {
		w.CheckRisk(next)
	}
	a.done.Raise(chunk, number)
}
