package exec

import (
	"fmt"
	"sync/atomic"

	"sandwich/runtime/pool"
)

const (
	maxReduceChunks = 256
	maxReduceUnits  = 4096
	leastUnit       = 16 << 10  // bytes of the sum: below that a further thread moves more than it saves
	mostUnit        = 128 << 10 // bytes of the sum
	unitsPerWorker  = 4         // so that who is disturbed leaves units to others
)

// sumCut is how a sum is cut: chunks of whole rows, and where rows are few and long, pieces of a row. A unit, one piece of
// one chunk, is what a worker takes at a time.
type sumCut struct {
	rowsPer  int // rows of a chunk
	chunks   int
	pieces   int // of a row, all but the last pieceLen long, a multiple of a cache line; 1 unless rowsPer is 1
	pieceLen int
	units    int
}

func cutSum(rows, width, workers int) sumCut {
	if rows == 0 || width == 0 {
		return sumCut{}
	}
	rowBytes := 4 * width
	unit := min(max(rows*rowBytes/(unitsPerWorker*workers), leastUnit), mostUnit)
	c := sumCut{pieces: 1, pieceLen: width}
	c.rowsPer = max(1, unit/rowBytes, (rows+maxReduceChunks-1)/maxReduceChunks)
	c.rowsPer = min(c.rowsPer, rows)
	c.chunks = (rows + c.rowsPer - 1) / c.rowsPer
	if c.rowsPer == 1 && rowBytes >= 2*unit {
		const perLine = cacheLine / 4
		c.pieces = min(rowBytes/unit, maxReduceUnits/c.chunks)
		c.pieceLen = ((width+c.pieces-1)/c.pieces + perLine - 1) / perLine * perLine
		c.pieces = (width + c.pieceLen - 1) / c.pieceLen
	}
	c.units = c.chunks * c.pieces
	return c
}

func (c *sumCut) rowsOf(chunk, rows int) (row0, row1 int) {
	return chunk * c.rowsPer, min((chunk+1)*c.rowsPer, rows)
}

const sumBits = 18 // sums in one run

// number tells the worker's present sum from all others of the process's life: the same on every worker.
func (r *reducer) number(w *pool.Worker) uint64 {
	if r.run != w.Run() {
		r.run, r.sums, r.last = w.Run(), 0, false
	}
	if r.sums >= 1<<sumBits {
		panic(fmt.Sprintf("exec: more than %d all-reduces in one run of the pool", 1<<sumBits))
	}
	return r.run<<sumBits | r.sums
}

// tally counts within one sum. It needs no reset: the word holds the number of the sum it was last used in beside the count,
// and who comes first with a newer number starts it over.
type tally struct{ word atomic.Uint64 }

// lineTally is a tally that many workers use at once.
type lineTally struct {
	tally
	_ [cacheLine - 8]byte
}

const tallyBits = 16

// add returns the count before this call, -1 where the tally is already in use by a later sum: the caller's is over.
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
