package pool

import (
	"fmt"
	"sync/atomic"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// Split cuts n items into parts contiguous ranges whose inner borders are multiples of align, as
// equal as that allows (sizes differ by at most one align, before the tail), and returns range i: a
// static partition, the same on every call. Late ranges may be empty when there are fewer blocks of
// align than parts. align below 1 means 1.
func Split(n, parts, i, align int) (lo, hi int) {
	if align < 1 {
		align = 1
	}
	blocks := (n + align - 1) / align
	each, more := blocks/parts, blocks%parts
	lo = (i*each + min(i, more)) * align
	hi = lo + each*align
	if i < more {
		hi += align
	}
	return min(lo, n), min(hi, n)
}

const (
	chunkBits = 20
	chunkMask = 1<<chunkBits - 1
	maxChunks = 1 << (chunkBits - 1) // the rest is room for each worker's one look past the end
	localBits = 12
	localMask = 1<<localBits - 1
)

// MostLists is how many loops one phase of a team on its guard may have.
const MostLists = 1 << listBits

// Counter hands out the chunks of one op to whichever worker comes next, so that a worker on a slow
// or disturbed core takes fewer of them. The zero value is ready, and it needs no reset: the word
// holds the barrier phase it was last used in beside the number of chunks given out, and the first
// worker to come with a newer phase starts it over. The workers that share a Counter must therefore
// pass a barrier they share between two uses of it; inside one phase it counts one loop.
type Counter struct {
	List uint8 // which of the loops of a phase it is for, below MostLists, where a team on its guard has several
	_    [cacheLine/2 - 8]byte
	word atomic.Uint64 // phase << chunkBits | chunks given out
	_    [cacheLine / 2]byte
}

// Next takes the next chunk of total items: the range [lo, hi), at most chunk long, and ok false
// when none is left. All workers of the loop pass the same total and chunk. Every item is handed
// out exactly once. A loop of more than 524,288 chunks gets larger ones.
func (w *Worker) Next(c *Counter, total, chunk int) (lo, hi int, ok bool) {
	if chunk < 1 {
		chunk = 1
	}
	if total > chunk*maxChunks {
		chunk = (total + maxChunks - 1) / maxChunks
	}
	if w.skip > 0 {
		return total, total, false
	}
	w.Lap(true)
	if w.joined {
		w.open(c)
	}
	n := int(c.take(w.tag))
	if w.joined {
		if n*chunk >= total {
			w.lap = 0
			w.ceased()
			if n, ok = w.team.guard.last(w); !ok {
				return total, total, false
			}
		}
		w.began(uint64(n))
	}
	if lo = n * chunk; lo >= total {
		w.lap = 0
		return total, total, false
	}
	return lo, min(lo+chunk, total), true
}

// Lap ends a chunk of work, and begins another one where there is more: that is where a worker that
// was made slow waits. Next calls it; loops that hand out nothing call it themselves.
func (w *Worker) Lap(more bool) {
	if w.slow == 0 {
		return
	}
	now := w.pool.now()
	if w.lap > 0 {
		for end := w.lap + time.Duration(float64(now-w.lap)/w.slow); now < end; now = w.pool.now() {
			sys.Pause(1)
		}
	}
	if w.lap = 0; more {
		w.lap = now
	}
}

// take returns the number of chunks given out before this call in phase tag. Everybody else in the
// phase writes only the same tag, so once it stands there an addition is enough.
func (c *Counter) take(tag uint64) uint64 {
	tag &= 1<<(64-chunkBits) - 1
	for {
		word := c.word.Load()
		if word>>chunkBits == tag {
			return c.word.Add(1)&chunkMask - 1
		}
		if c.word.CompareAndSwap(word, tag<<chunkBits|1) {
			return 0
		}
	}
}

// nextGlobal is the phase after a global barrier: the same for workers whose groups passed
// different numbers of local ones.
func nextGlobal(tag uint64) uint64 { return (tag>>localBits + 1) << localBits }

// nextLocal is the phase after a local barrier.
func nextLocal(tag uint64) uint64 {
	if tag&localMask == localMask {
		panic(fmt.Sprintf("pool: more than %d local barriers without a global one", localMask))
	}
	return tag + 1
}
