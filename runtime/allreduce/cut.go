package allreduce

import (
	"fmt"
	"sync/atomic"

	"sandwich/runtime/pool"
)

const (
	cacheLine       = 64
	maxReduceChunks = 256
	maxReduceUnits  = 4096
	leastUnit       = 8 << 10   // bytes of the sum: below that a further worker moves more than it saves
	mostUnit        = 128 << 10 // bytes of the sum
	unitsPerWorker  = 4         // so that who is disturbed leaves units to others
)

// sumCut is how a sum is cut: chunks of whole rows, and where rows are few and long, pieces of a
// row. A unit, one piece of one chunk, is what a worker takes at a time. Units are as equal as can
// be, and their number is a multiple of the workers where there are enough of them.
type sumCut struct {
	rows, width, workers int

	chunks int
	pieces int // of each chunk; 1 unless a chunk is a single row
	units  int
}

func cutSum(rows, width, workers int) sumCut {
	c := sumCut{rows: rows, width: width, workers: workers}
	if rows == 0 || width == 0 {
		return c
	}
	bytes := 4 * rows * width
	unit := min(max(bytes/(unitsPerWorker*workers), leastUnit), mostUnit)
	want := max(1, bytes/unit)
	if want > workers {
		want = (want + workers - 1) / workers * workers
	}
	c.chunks = min(want, rows, maxReduceChunks)
	c.pieces = 1
	if c.chunks == rows && want > rows {
		const perLine = cacheLine / 4
		c.pieces = min(want/rows, (width+perLine-1)/perLine, maxReduceUnits/c.chunks)
	}
	c.units = c.chunks * c.pieces
	return c
}

// rowsOf is the range of rows of a chunk.
func (c *sumCut) rowsOf(chunk int) (row0, row1 int) { return pool.Split(c.rows, c.chunks, chunk, 1) }

// columns is the range of columns of a piece: whole cache lines.
func (c *sumCut) columns(piece int) (col0, col1 int) {
	return pool.Split(c.width, c.pieces, piece, cacheLine/4)
}

// cut is how the worker's present sum is cut: remembered, since most sums are like the one before.
func (r *reducer) cut(w *pool.Worker, o *Job) *sumCut {
	if r.cutting.rows != o.Rows || r.cutting.width != o.Width || r.cutting.workers != w.N() {
		r.cutting = cutSum(o.Rows, o.Width, w.N())
	}
	return &r.cutting
}

const sumBits = 18 // sums in one run

// number tells the worker's present sum from all others of the process's life: the same on every
// worker.
func (r *reducer) number(w *pool.Worker) uint64 {
	if r.run != w.Run() {
		r.run, r.sums, r.last = w.Run(), 0, false
	}
	if r.sums >= 1<<sumBits {
		panic(fmt.Sprintf("allreduce: more than %d all-reduces in one run of the pool", 1<<sumBits))
	}
	return r.run<<sumBits | r.sums
}

// tally counts within one sum. It needs no reset: the word holds the number of the sum it was last
// used in next to the count; the first worker with a newer number resets it.
type tally struct{ word atomic.Uint64 }

// lineTally is a tally that many workers use at once.
type lineTally struct {
	tally
	_ [cacheLine - 8]byte
}

const tallyBits = 16

// add returns the count before this call, -1 where the tally is already in use by a later sum: the
// caller's is over.
func (t *tally) add(number uint64) int {
	number &= 1<<(64-tallyBits) - 1
	for {
		word := t.word.Load()
		age := int64((word>>tallyBits - number) << tallyBits)
		next, count := word+1, int(word&(1<<tallyBits-1))
		switch {
		case age > 0:
			return -1
		case age < 0:
			next, count = number<<tallyBits|1, 0
		}
		if t.word.CompareAndSwap(word, next) {
			return count
		}
	}
}
