package calibrate

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/allreduce"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// Sizes of the matrices of an all-reduce: from one row of a decode step to a prefill chunk of a
// small model.
const reduceWidth = 4096

var reduceRows = []int{1, 16, 256}

// reduceRanks returns the numbers of ranks to measure: powers of two up to eight and the number of
// memory nodes, at most pus.
func (f *full) reduceRanks(pus int) []int {
	ranks := []int{2, 4, 8, len(memoryNodes(f.profile.Machine))}
	slices.Sort(ranks)
	return slices.DeleteFunc(slices.Compact(ranks), func(r int) bool { return r < 2 || r > pus })
}

// reduceMatrix returns the bytes of a matrix of an all-reduce.
func reduceMatrix() int { return 4 * mem.RowStride(reduceWidth) * reduceRows[len(reduceRows)-1] }

// reduceBytes returns the bytes of all matrices of measureReduces.
func (f *full) reduceBytes() int {
	ranks := f.reduceRanks(len(f.onePerCore()))
	if len(ranks) == 0 {
		return 0
	}
	return (ranks[len(ranks)-1] + 1) * reduceMatrix()
}

// reduction is an all-reduce of one size on a number of ranks.
type reduction struct {
	sum     *allreduce.Sum
	job     allreduce.Job
	workers []int
	ranks   int
}

// measureReduces measures the all-reduce that serving uses between ranks with equal numbers of
// cores.
func (f *full) measureReduces(ctx context.Context, until time.Time) error {
	workers := f.workersOf(f.onePerCore())
	all := f.reduceRanks(len(workers))
	if len(all) == 0 {
		return fmt.Errorf("%w: it needs two cores", errUnmeasured)
	}
	vec, err := microkernel.NewVec(microkernel.Host().Best())
	if err != nil {
		return err
	}
	limit, stride, bytes := all[len(all)-1], mem.RowStride(reduceWidth), reduceMatrix()
	buf, err := mem.Alloc((limit+1)*bytes, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return fmt.Errorf("%w: %w", errUnmeasured, err)
	}
	defer func() { _ = buf.Free() }() // the caller could not handle an error
	matrix := func(i int) allreduce.Matrix {
		return allreduce.Matrix{Base: unsafe.Add(buf.Pointer(), i*bytes), Stride: stride}
	}
	var trials []*trial
	of := map[*trial]*reduction{}
	for _, ranks := range all {
		for _, rows := range reduceRows {
			r := &reduction{sum: allreduce.New(f.pool, []*microkernel.Vec{vec}, ranks), workers: workers, ranks: ranks,
				job: allreduce.Job{Rows: rows, Width: reduceWidth, Into: matrix(ranks)}}
			for i := range ranks {
				r.job.Partials = append(r.job.Partials, matrix(i))
			}
			t := &trial{workers: workers}
			trials, of[t] = append(trials, t), r
		}
	}
	err = f.rounds(ctx, trials, until, func(t *trial) error {
		seconds, err := f.reduce(vec, of[t])
		t.a = append(t.a, seconds)
		return err
	})
	for _, t := range trials {
		if r := of[t]; len(t.a) > 0 {
			f.sets = append(f.sets, profiles.SetFigure{Name: profiles.AllReduce, Domain: profiles.MachineDomain,
				CPUs: f.pusOf(workers), Ranks: r.ranks, Bytes: int64(4 * r.job.Rows * reduceWidth),
				Figure: profiles.NewFigure("s", t.a)})
		}
	}
	return err
}

// reduce takes one sample, from the start of the first worker to the end of the last. Before it,
// each worker writes its part of its rank's matrix, as a product would.
func (f *full) reduce(vec *microkernel.Vec, r *reduction) (float64, error) {
	if _, err := f.pool.SetActive(r.workers); err != nil {
		return 0, err
	}
	f.pool.Run(func(w *pool.Worker) {
		rank := w.ID() * r.ranks / w.N()
		first := (rank*w.N() + r.ranks - 1) / r.ranks // lowest ID of the rank; next: of the following rank
		next := ((rank+1)*w.N() + r.ranks - 1) / r.ranks
		lo, hi := pool.Split(r.job.Rows, next-first, w.ID()-first, 1)
		part := r.job.Partials[rank]
		for row := lo; row < hi; row++ {
			vec.Scale((*float32)(unsafe.Add(part.Base, 4*row*part.Stride)), -1, r.job.Width)
		}
		w.Barrier()
		s := &f.stamps[w.Index()]
		s.from = time.Now()
		r.sum.Publish(w, rank, next-first, &r.job)
		r.sum.Finish(w, rank, &r.job, -1, nil)
		s.to = time.Now()
	})
	first, last := f.stamps[r.workers[0]].from, f.stamps[r.workers[0]].to
	for _, i := range r.workers {
		if s := &f.stamps[i]; s.from.Before(first) {
			first = s.from
		}
		if s := &f.stamps[i]; s.to.After(last) {
			last = s.to
		}
	}
	return last.Sub(first).Seconds(), nil
}
