package allreduce

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// summing is a run of all-reduces whose partials are functions of their position, so that any
// worker can tell what a sum must be.
type summing struct {
	t      *testing.T
	reduce *Sum
	ranks  int
	owners [][]int // by rank, the IDs of the workers that compute for it; a worker may have several ranks
	jobs   []Job
	after  []func(row0, row1 int) // by job; nil for none
	delay  bool
	single bool // chunks are published one by one
}

var poisoned = math.Float32frombits(0x7fdead55)

// value is one element of a partial: sums of them round, and differently in every order.
func value(op, rank, row, col int) float32 {
	h := uint32(op*7919+rank*104729+row*1299709+col*15485863) * 2654435761
	return math.Float32frombits(0x3f000000+(h>>8)&0x3ffffff) - 4
}

func (s *summing) want(op, row, col int) float32 {
	sum := value(op, 0, row, col)
	for rank := 1; rank < s.ranks; rank++ {
		sum += value(op, rank, row, col)
	}
	return sum
}

func matrix(t *testing.T, rows, width int) Matrix {
	m := Matrix{Stride: mem.RowStride(width)}
	b, err := mem.Alloc(4*max(1, rows*m.Stride), mem.Options{Node: mem.AnyNode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free() })
	all := b.Float32s()
	for i := range all {
		all[i] = poisoned
	}
	m.Base = b.Pointer()
	return m
}

func (m Matrix) row(r, width int) []float32 { return unsafe.Slice(m.at(r, 0), width) }

func (s *summing) pause(rng *rand.Rand) {
	if s.delay && rng.IntN(8) == 0 {
		time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond)
	}
}

// work is one worker's part: it writes its share of its ranks' partials, sums, spoils its share at
// once, and checks.
func (s *summing) work(w *pool.Worker) {
	rng := rand.New(rand.NewPCG(w.Run(), uint64(w.ID())))
	for op := range s.jobs {
		o := &s.jobs[op]
		home := -1
		for rank, ids := range s.owners {
			for member, id := range ids {
				if id != w.ID() {
					continue
				}
				home = rank
				s.pause(rng)
				s.write(w, o, op, rank, member, rng)
			}
		}
		s.pause(rng)
		s.reduce.Finish(w, max(home, 0), o, -1, s.after[op])
		if s.after[op] == nil {
			s.check(o, op, rng)
		}
		for rank, ids := range s.owners {
			for member, id := range ids {
				if inPlace := rank == 0 && o.Into.Base == o.Partials[0].Base; id == w.ID() && !inPlace {
					s.share(w, o, len(ids), member, func(_, row0, row1 int) {
						for row := row0; row < row1; row++ {
							fill(o.Partials[rank].row(row, o.Width))
						}
					})
				}
			}
		}
	}
}

// share calls visit with the rows of each chunk, or of all of them as chunk -1, that one of size
// members writes.
func (s *summing) share(w *pool.Worker, o *Job, size, member int, visit func(chunk, row0, row1 int)) {
	if !s.single {
		lo, hi := pool.Split(o.Rows, size, member, 1)
		visit(-1, lo, hi)
		return
	}
	c := s.reduce.workers[w.Index()].cut(w, o)
	for chunk := range c.chunks {
		row0, row1 := c.rowsOf(chunk)
		lo, hi := pool.Split(row1-row0, size, member, 1)
		visit(chunk, row0+lo, row0+hi)
	}
}

// write fills the member's rows of the rank's partial and publishes it.
func (s *summing) write(w *pool.Worker, o *Job, op, rank, member int, rng *rand.Rand) {
	size := len(s.owners[rank])
	s.share(w, o, size, member, func(chunk, row0, row1 int) {
		for row := row0; row < row1; row++ {
			for col := range o.Width {
				*o.Partials[rank].at(row, col) = value(op, rank, row, col)
			}
		}
		if chunk >= 0 {
			r := &s.reduce.workers[w.Index()]
			s.reduce.publish(r, rank, size, r.number(w), chunk)
			s.pause(rng)
		}
	})
	if !s.single {
		s.reduce.Publish(w, rank, size, o)
	}
}

func fill(x []float32) {
	for i := range x {
		x[i] = poisoned
	}
}

// check compares some rows of the sum, and the padding after them.
func (s *summing) check(o *Job, op int, rng *rand.Rand) {
	for range min(o.Rows, 4) {
		row := rng.IntN(o.Rows)
		for col, got := range o.Into.row(row, o.Width) {
			if want := s.want(op, row, col); math.Float32bits(got) != math.Float32bits(want) {
				s.t.Errorf("op %d, %d ranks, [%d,%d]: element (%d,%d) is %x, want %x", op, s.ranks, o.Rows, o.Width,
					row, col, got, want)
				return
			}
		}
		for _, got := range unsafe.Slice(o.Into.at(row, o.Width), o.Into.Stride-o.Width) {
			if math.Float32bits(got) != math.Float32bits(poisoned) {
				s.t.Errorf("op %d: something was written behind row %d", op, row)
				return
			}
		}
	}
}

// sumShapes reach one chunk, many, pieces of rows, odd tails and nothing at all.
var sumShapes = [][2]int{{1, 1}, {1, 768}, {3, 77}, {0, 64}, {1, 20000}, {2, 33333}, {40, 257}, {64, 768},
	{300, 100}, {9, 4099}}

func newSumming(t *testing.T, p *pool.Pool, ranks, ops int, rng *rand.Rand) *summing {
	var vecs []*microkernel.Vec
	for _, isa := range microkernel.Host().ISAs() {
		vec, err := microkernel.NewVec(isa)
		if err != nil {
			t.Fatal(err)
		}
		vecs = append(vecs, vec)
	}
	s := &summing{t: t, ranks: ranks, reduce: New(p, vecs, ranks), owners: make([][]int, ranks)}
	workers := p.Size()
	for id := range workers {
		rank := rng.IntN(ranks)
		if id < ranks {
			rank = id
		}
		s.owners[rank] = append(s.owners[rank], id)
	}
	for rank := workers; rank < ranks; rank++ { // fewer workers than ranks
		s.owners[rank] = append(s.owners[rank], rng.IntN(workers))
	}
	parts := make([][]Matrix, len(sumShapes))
	for op := range ops {
		i := rng.IntN(len(sumShapes))
		rows, width := sumShapes[i][0], sumShapes[i][1]
		if parts[i] == nil {
			for range ranks + 1 {
				parts[i] = append(parts[i], matrix(t, rows, width))
			}
		}
		o := Job{Rows: rows, Width: width, Partials: parts[i][:ranks], Into: parts[i][ranks]}
		var after func(row0, row1 int)
		if op%5 == 4 { // in place: only after may look
			o.Into = o.Partials[0]
			after = func(row0, row1 int) {
				for row := row0; row < row1; row++ {
					for col, got := range o.Into.row(row, width) {
						if got != s.want(op, row, col) {
							t.Errorf("op %d in place: element (%d,%d) is %x, want %x", op, row, col, got,
								s.want(op, row, col))
							return
						}
					}
				}
			}
		}
		s.jobs, s.after = append(s.jobs, o), append(s.after, after)
	}
	return s
}

// sumPool has workers of as many classes as the host has instruction sets.
func sumPool(t testing.TB, workers int, spin time.Duration) *pool.Pool {
	pus, classes := make([]int, workers), make([]int, workers)
	for i := range classes {
		classes[i] = i % len(microkernel.Host().ISAs())
	}
	p, err := pool.New(pus, pool.Options{Spin: spin, Class: classes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Sums by any number of ranks and workers have the bits of a plain loop, partials may be
// overwritten as soon as Finish returns, and sums until the next Publish.
func TestAllReduceEqualsPlainSum(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for ranks := 1; ranks <= 8; ranks++ {
		if raceEnabled && ranks&(ranks-1) != 0 {
			continue // the kernels are slow
		}
		for _, workers := range []int{1, 2, 3, ranks, ranks + 1 + rng.IntN(4)} {
			t.Run(fmt.Sprintf("%d ranks, %d workers, seed %d", ranks, workers, seed), func(t *testing.T) {
				p := sumPool(t, workers, pool.NoSpin)
				ops := 24
				if raceEnabled {
					ops = 4
				}
				s := newSumming(t, p, ranks, ops, rng)
				s.delay, s.single = rng.IntN(2) == 0, rng.IntN(2) == 0
				for range 2 {
					p.Run(s.work)
				}
			})
		}
	}
}

// TestAllReduceAfterCoversEveryRow checks that after is called once for each row.
func TestAllReduceAfterCoversEveryRow(t *testing.T) {
	p := sumPool(t, 3, pool.NoSpin)
	s := newSumming(t, p, 3, 12, rand.New(rand.NewPCG(1, 2)))
	seen := make([][]int, len(s.jobs))
	for i := range s.jobs {
		seen[i] = make([]int, s.jobs[i].Rows)
		s.after[i] = func(row0, row1 int) {
			for r := row0; r < row1; r++ {
				seen[i][r]++
			}
		}
	}
	p.Run(s.work)
	for i := range seen {
		for r, n := range seen[i] {
			if n != 1 {
				t.Errorf("op %d: row %d of %d was seen %d times", i, r, len(seen[i]), n)
			}
		}
	}
}

// TestAllReduceUnwindsFailedRun checks that a worker that fails in the middle of a sum releases the
// others, and that the next run ignores the flags that it left.
func TestAllReduceUnwindsFailedRun(t *testing.T) {
	const workers, ranks = 5, 3
	p := sumPool(t, workers, 0)
	rng := rand.New(rand.NewPCG(3, 4))
	s := newSumming(t, p, ranks, 6, rng)
	boom := errors.New("boom")
	rounds := 15
	if raceEnabled {
		rounds = 5 // each worker fails once
	}
	for round := range rounds {
		at := rng.IntN(len(s.jobs))
		func() {
			defer func() {
				if e, ok := recover().(*pool.Panic); !ok || !errors.Is(e, boom) {
					t.Errorf("round %d: got %v", round, e)
				}
			}()
			p.Run(func(w *pool.Worker) {
				if w.ID() != round%workers {
					s.work(w)
					return
				}
				part := *s
				part.jobs = s.jobs[:at]
				part.work(w)
				panic(boom)
			})
		}()
		p.Run(s.work)
	}
}

// Sums of one run follow each other, and so does any number of runs, without allocation.
func TestAllReduceAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates; run without -race")
	}
	p := sumPool(t, 2, pool.NoSpin)
	s := newSumming(t, p, 2, 0, rand.New(rand.NewPCG(5, 6)))
	parts := []Matrix{matrix(t, 64, 768), matrix(t, 64, 768), matrix(t, 64, 768)}
	for _, m := range parts {
		for row := range 64 {
			clear(m.row(row, 768))
		}
	}
	jobs := []Job{
		{Rows: 64, Width: 768, Partials: parts[:2], Into: parts[2]},
		{Rows: 1, Width: 768, Partials: parts[:2], Into: parts[2]},
	}
	body := func(w *pool.Worker) {
		for i := range 20 {
			o := &jobs[i%2]
			s.reduce.Publish(w, w.ID(), 1, o)
			s.reduce.Finish(w, w.ID(), o, -1, nil)
		}
	}
	if n := testing.AllocsPerRun(20, func() { p.Run(body) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCutSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 20000 {
		rows, width, workers := rng.IntN(3000), 1+rng.IntN(20000), 1+rng.IntN(200)
		if rng.IntN(10) == 0 {
			rows, width = 1+rng.IntN(3), 1+rng.IntN(1<<22)
		}
		c := cutSum(rows, width, workers)
		if c.chunks > maxReduceChunks || c.units > maxReduceUnits || c.units != c.chunks*c.pieces {
			t.Fatalf("[%d,%d] by %d: %+v", rows, width, workers, c)
		}
		last := 0
		for i := range c.chunks {
			lo, hi := c.rowsOf(i)
			if lo != last || hi <= lo || c.pieces > 1 && hi != lo+1 {
				t.Fatalf("[%d,%d] by %d: chunk %d is rows %d to %d", rows, width, workers, i, lo, hi)
			}
			last = hi
		}
		if last != rows {
			t.Fatalf("[%d,%d] by %d: %+v ends at row %d", rows, width, workers, c, last)
		}
		last = 0
		for i := range c.pieces {
			lo, hi := c.columns(i)
			if lo != last || hi <= lo {
				t.Fatalf("[%d,%d] by %d: piece %d is columns %d to %d", rows, width, workers, i, lo, hi)
			}
			last = hi
		}
		if rows > 0 && last != width {
			t.Fatalf("[%d,%d] by %d: %+v ends at column %d", rows, width, workers, c, last)
		}
		if bytes := 4 * rows * width; c.units > 1 && bytes/c.units < minUnit/2 {
			t.Fatalf("[%d,%d] by %d: %d units of %d bytes", rows, width, workers, c.units, bytes)
		}
	}
}
