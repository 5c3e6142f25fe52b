package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/allreduce"
	"sandwich/runtime/exec"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// reduceArms are the ways to add up partial results, in the order in which they are interleaved.
var reduceArms = []string{"shifted", "barrier", "blocking"}

// AllReduceOptions configure AllReduce: one matrix per rank, and the workers that add them up.
type AllReduceOptions struct {
	Rows, Width int
	Ranks       int
	PUs         []int // by worker; each rank has at least one
	Chunk       int   // bytes, of the way blocking
	Reps        int
}

// reduceBench measures one size with one number of ranks.
type reduceBench struct {
	AllReduceOptions

	vec     *microkernel.Vec
	reduce  *allreduce.Sum
	job     allreduce.Job
	members [][2]int // by rank: its first worker, and the end of its range
	slots   []reduceSlot
}

// reduceSlot is the state of one worker. Slots share no cache line.
type reduceSlot struct {
	rank, member int
	parts        []*float32
	began, ended time.Duration
	_            [128]byte
}

// run returns seconds per way and repetition.
func (b *reduceBench) run(ctx context.Context) (samples [][]float64, err error) {
	isas := microkernel.Host().ISAs()
	w, err := exec.NewWorkers(exec.WorkerOptions{PUs: b.PUs, ISA: isas[len(isas)-1]})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	free, err := b.prepare(w)
	if err != nil {
		return nil, err
	}
	defer free()
	w.Pool.Lead(func(l *pool.Leader) { samples, err = b.repeat(ctx, l) })
	return samples, err
}

// repeat runs the ways interleaved, on the thread of worker 0, so that no other thread must wake in
// between.
func (b *reduceBench) repeat(ctx context.Context, l *pool.Leader) ([][]float64, error) {
	arms := []func(w *pool.Worker, s *reduceSlot){b.shifted, b.barrier, b.blocking}
	samples := make([][]float64, len(arms))
	begin := time.Now()
	for rep := range b.Reps + 1 {
		for k := range arms {
			i := (rep + k) % len(arms)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			l.Run(func(w *pool.Worker) {
				s := &b.slots[w.Index()]
				b.renew(s)
				w.Barrier()
				s.began = time.Since(begin)
				arms[i](w, s)
				s.ended = time.Since(begin)
			})
			if rep == 0 { // warm-up
				if err := b.verify(reduceArms[i]); err != nil {
					return nil, err
				}
				continue
			}
			samples[i] = append(samples[i], b.took().Seconds())
		}
	}
	return samples, nil
}

// prepare makes the matrices. Each worker touches its share first.
func (b *reduceBench) prepare(on *exec.Workers) (free func(), err error) {
	b.vec = on.Vec
	b.reduce = allreduce.New(on.Pool, []*microkernel.Vec{b.vec}, b.Ranks)
	b.slots = make([]reduceSlot, len(b.PUs))
	for rank := range b.Ranks {
		lo, hi := pool.Split(len(b.PUs), b.Ranks, rank, 1)
		b.members = append(b.members, [2]int{lo, hi})
		for i := lo; i < hi; i++ {
			b.slots[i] = reduceSlot{rank: rank, member: i - lo, parts: make([]*float32, b.Ranks)}
		}
	}
	stride := mem.RowStride(b.Width)
	bytes := (4*b.Rows*stride + mem.PageSize() - 1) / mem.PageSize() * mem.PageSize()
	buf, err := mem.Alloc((b.Ranks+1)*bytes, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return nil, fmt.Errorf("%d matrices of %dx%d: %w", b.Ranks+1, b.Rows, b.Width, err)
	}
	matrix := func(i int) allreduce.Matrix {
		return allreduce.Matrix{Base: unsafe.Add(buf.Pointer(), i*bytes), Stride: stride}
	}
	b.job = allreduce.Job{Rows: b.Rows, Width: b.Width, Into: matrix(b.Ranks)}
	for rank := range b.Ranks {
		b.job.Partials = append(b.job.Partials, matrix(rank))
	}
	on.Pool.Run(func(w *pool.Worker) {
		s := &b.slots[w.Index()]
		rng := rand.New(rand.NewPCG(uint64(s.rank), uint64(s.member)))
		b.overShare(s, func(row []float32) {
			for i := range row {
				row[i] = float32(rng.NormFloat64())
			}
		})
	})
	return func() { _ = buf.Free() }, nil
}

// rowOf returns columns [col, col+n) of a row of a matrix.
func rowOf(m allreduce.Matrix, row, col, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(m.Base, 4*(row*m.Stride+col))), n)
}

// overShare visits the worker's share of its rank's partial result: the part that a product would
// have written.
func (b *reduceBench) overShare(s *reduceSlot, visit func(row []float32)) {
	size := b.members[s.rank][1] - b.members[s.rank][0]
	if b.Rows >= size {
		lo, hi := pool.Split(b.Rows, size, s.member, 1)
		for row := lo; row < hi; row++ {
			visit(rowOf(b.job.Partials[s.rank], row, 0, b.Width))
		}
		return
	}
	lo, hi := pool.Split(b.Width, size, s.member, 16)
	for row := range b.Rows {
		if lo < hi {
			visit(rowOf(b.job.Partials[s.rank], row, lo, hi-lo))
		}
	}
}

// renew writes the worker's share again, so that only its cache holds it.
func (b *reduceBench) renew(s *reduceSlot) {
	b.overShare(s, func(row []float32) { b.vec.Scale(&row[0], -1, len(row)) })
}

// shifted is the way that serves.
func (b *reduceBench) shifted(w *pool.Worker, s *reduceSlot) {
	b.reduce.Publish(w, s.rank, b.members[s.rank][1]-b.members[s.rank][0], &b.job)
	b.reduce.Finish(w, s.rank, &b.job, -1, nil)
}

// barrier runs a barrier, sums each worker's rows or columns, and runs a second barrier.
func (b *reduceBench) barrier(w *pool.Worker, s *reduceSlot) {
	w.Barrier()
	if b.Rows >= w.N() {
		lo, hi := pool.Split(b.Rows, w.N(), w.ID(), 1)
		b.sum(s, lo, hi, 0, b.Width)
	} else {
		lo, hi := pool.Split(b.Width, w.N(), w.ID(), 16)
		b.sum(s, 0, b.Rows, lo, hi)
	}
	w.Barrier()
}

// blocking processes chunks of fixed size in the same order on every rank, each between two
// barriers, like a shared-memory all-reduce with buffers of fixed size (the rival in Sandwich
// section 7).
func (b *reduceBench) blocking(w *pool.Worker, s *reduceSlot) {
	width := min(b.Width, max(16, b.Chunk/4))
	rows := max(1, b.Chunk/4/width)
	for row := 0; row < b.Rows; row += rows {
		for col := 0; col < b.Width; col += width {
			lo, hi := pool.Split(min(width, b.Width-col), w.N(), w.ID(), 16)
			w.Barrier()
			b.sum(s, row, min(row+rows, b.Rows), col+lo, col+hi)
			w.Barrier()
		}
	}
}

// sum adds a range of rows and columns.
func (b *reduceBench) sum(s *reduceSlot, row0, row1, col0, col1 int) {
	if col0 >= col1 {
		return
	}
	for row := row0; row < row1; row++ {
		for i, part := range b.job.Partials {
			s.parts[i] = &rowOf(part, row, col0, 1)[0]
		}
		b.vec.Sum(&rowOf(b.job.Into, row, col0, 1)[0], s.parts, col1-col0)
	}
}

// took returns the time from the start of the first worker to the end of the last.
func (b *reduceBench) took() time.Duration {
	began, ended := b.slots[0].began, b.slots[0].ended
	for i := range b.slots {
		began, ended = min(began, b.slots[i].began), max(ended, b.slots[i].ended)
	}
	return ended - began
}

// verify compares the sum with a plain loop, and overwrites it so that the next way must compute
// it.
func (b *reduceBench) verify(way string) error {
	for row := range b.Rows {
		for col, got := range rowOf(b.job.Into, row, 0, b.Width) {
			want := rowOf(b.job.Partials[0], row, col, 1)[0]
			for _, part := range b.job.Partials[1:] {
				want += rowOf(part, row, col, 1)[0]
			}
			if math.Float32bits(got) != math.Float32bits(want) {
				return fmt.Errorf("the sum of way %s is wrong at row %d, column %d: %g instead of %g; please "+
					"report this bug", way, row, col, got, want)
			}
		}
		clear(rowOf(b.job.Into, row, 0, b.Width))
	}
	return nil
}
