package pool

import (
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// Front takes the next chunk for the worker that owns the assignment. It reports false if none is
// left.
func (w *Worker) Front(s *Assignment, chunks int) (int, bool) {
	front, _, ok := w.takeAssigned(s, chunks, 1)
	return front, ok
}

// Back takes the last chunk that is left for another worker. It reports false if none is left.
func (w *Worker) Back(s *Assignment, chunks int) (int, bool) {
	_, back, ok := w.takeAssigned(s, chunks, 1<<assignedBits)
	return chunks - 1 - back, ok
}

// Left returns how many of the chunks are not taken.
func (w *Worker) Left(s *Assignment, chunks int) int {
	word := s.word.Load()
	if word>>(2*assignedBits) != w.assignedTag() {
		return chunks
	}
	return chunks - int(word&assignedMask) - int(word>>assignedBits&assignedMask)
}

// assignedTag returns the phase in the bits that the word has for it.
func (w *Worker) assignedTag() uint64 { return w.tag & (1<<(64-2*assignedBits) - 1) }

// takeAssigned adds `one` to the numbers of chunks given out, and returns both numbers as they
// were.
func (w *Worker) takeAssigned(s *Assignment, chunks int, one uint64) (front, back int, ok bool) {
	w.Lap(true)
	tag := w.assignedTag()
	for {
		word := s.word.Load()
		now := word
		if word>>(2*assignedBits) != tag {
			now = tag << (2 * assignedBits)
		}
		front, back = int(now&assignedMask), int(now>>assignedBits&assignedMask)
		if front+back >= chunks {
			w.lap = 0
			return front, back, false
		}
		if s.word.CompareAndSwap(word, now+one) {
			return front, back, true
		}
	}
}

// Next takes the next chunk of total items: the range [lo, hi), at most chunk long. ok is false if
// none is left. All workers of the loop pass the same total and chunk. Every item is handed out
// exactly once. A loop of more than 524,288 chunks gets larger ones.
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
	if w.tolerant {
		w.open(c)
	}
	n := int(c.take(w.tag))
	if w.tolerant {
		if n*chunk >= total {
			w.lap = 0
			w.ceased()
			if n, ok = w.team.membership.last(w); !ok {
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

// Lap ends a chunk of work and begins another one if there is more. A throttled worker waits there.
// Next calls it; loops that hand out nothing call it themselves.
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
