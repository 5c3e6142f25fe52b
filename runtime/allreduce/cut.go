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
	minUnit         = 8 << 10   // bytes of the sum: below that a further worker moves more than it saves
	maxUnit         = 128 << 10 // bytes of the sum
	unitsPerWorker  = 4         // so that other workers take the units of a descheduled one
)

// sumCut divides a sum into chunks of whole rows and, if rows are few and long, each chunk into
// pieces of a row. A worker takes one unit at a time, which is one piece of one chunk. Units have
// about equal sizes, and their number is a multiple of the workers if there are enough of them.
type sumCut struct {
	rows, width, workers int

	chunks int
	pieces int // of each chunk; 1 unless a chunk is a single row
	units  int
}

// cutSum divides a sum of a matrix [rows, width] among workers.
func cutSum(rows, width, workers int) sumCut {
	c := sumCut{rows: rows, width: width, workers: workers}
	if rows == 0 || width == 0 {
		return c
	}
	bytes := 4 * rows * width
	unit := min(max(bytes/(unitsPerWorker*workers), minUnit), maxUnit)
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

// rowsOf returns the range of rows of a chunk.
func (c *sumCut) rowsOf(chunk int) (row0, row1 int) { return pool.Split(c.rows, c.chunks, chunk, 1) }

// columns returns the range of columns of a piece, in whole cache lines.
func (c *sumCut) columns(piece int) (col0, col1 int) {
	return pool.Split(c.width, c.pieces, piece, cacheLine/4)
}

// cut returns the division of the worker's current sum. It is kept, since most sums have the size
// of the one before.
func (r *reducer) cut(w *pool.Worker, o *Job) *sumCut {
	if r.cutting.rows != o.Rows || r.cutting.width != o.Width || r.cutting.workers != w.N() {
		r.cutting = cutSum(o.Rows, o.Width, w.N())
	}
	return &r.cutting
}

const sumBits = 18 // sums in one run

// number returns the number of the worker's current sum. It is the same on every worker and higher
// than that of any earlier sum of the pool.
func (r *reducer) number(w *pool.Worker) uint64 {
	if r.run != w.Run() {
		r.run, r.sums, r.last = w.Run(), 0, false
	}
	if r.sums >= 1<<sumBits {
		panic(fmt.Sprintf("allreduce: more than %d all-reduces in one run of the pool", 1<<sumBits))
	}
	return r.run<<sumBits | r.sums
}

// tally counts within one sum. It needs no reset: its word has the number of the sum in which it
// was last used and the count, and the first worker with a newer number starts at 0.
type tally struct{ word atomic.Uint64 }

// lineTally is a tally in a cache line of its own, for use by many workers at once.
type lineTally struct {
	tally
	_ [cacheLine - 8]byte
}

const tallyBits = 16

// add counts one more in the sum with a number. It returns the count before this call, or -1 if a
// later sum uses the tally already, so that the caller's sum has ended.
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
