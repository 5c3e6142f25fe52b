package pool

import "sync/atomic"

// Assignment hands out the chunks of a worker's own part of an op. The worker takes them from the
// front, and workers that have finished theirs take them from the back, so that a part is computed
// in order unless its worker is late. The zero value is ready. Like a Counter it needs no reset and
// serves one loop of a barrier phase.
type Assignment struct {
	_    [cacheLine / 2]byte
	word atomic.Uint64 // phase << 2*assignedBits | chunks given out at the back << assignedBits | at the front
	_    [cacheLine / 2]byte
}

const (
	assignedBits = 10
	assignedMask = 1<<assignedBits - 1
)

// MaxAssigned is the largest number of chunks of an Assignment.
const MaxAssigned = assignedMask / 2

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
