package pool

import "sync/atomic"

// Stretch hands out the pieces of a worker's own part of an op: the worker takes them from the
// front, and others who are done with theirs from the back, so that a part is worked through in
// order where nobody is late. The zero value is ready, and like a Counter it needs no reset: it
// serves one loop of a barrier phase.
type Stretch struct {
	_    [cacheLine / 2]byte
	word atomic.Uint64 // phase << 2*pieceBits | pieces given out at the back << pieceBits | at the front
	_    [cacheLine / 2]byte
}

const (
	pieceBits = 10
	pieceMask = 1<<pieceBits - 1
)

// MaxPieces is how many pieces a Stretch may have.
const MaxPieces = pieceMask / 2

// Front takes the next of so many pieces for the one whose part it is; false where none is left.
func (w *Worker) Front(s *Stretch, pieces int) (int, bool) {
	front, _, ok := w.takePiece(s, pieces, 1)
	return front, ok
}

// Back takes the last one that is left for somebody else.
func (w *Worker) Back(s *Stretch, pieces int) (int, bool) {
	_, back, ok := w.takePiece(s, pieces, 1<<pieceBits)
	return pieces - 1 - back, ok
}

// Left is how many of so many pieces nobody has taken.
func (w *Worker) Left(s *Stretch, pieces int) int {
	word := s.word.Load()
	if word>>(2*pieceBits) != w.pieceTag() {
		return pieces
	}
	return pieces - int(word&pieceMask) - int(word>>pieceBits&pieceMask)
}

// pieceTag is the phase in the bits that the word has for it.
func (w *Worker) pieceTag() uint64 { return w.tag & (1<<(64-2*pieceBits) - 1) }

// takePiece adds one to either number of pieces given out, and returns both as they were.
func (w *Worker) takePiece(s *Stretch, pieces int, one uint64) (front, back int, ok bool) {
	w.Lap(true)
	tag := w.pieceTag()
	for {
		word := s.word.Load()
		now := word
		if word>>(2*pieceBits) != tag {
			now = tag << (2 * pieceBits)
		}
		front, back = int(now&pieceMask), int(now>>pieceBits&pieceMask)
		if front+back >= pieces {
			w.lap = 0
			return front, back, false
		}
		if s.word.CompareAndSwap(word, now+one) {
			return front, back, true
		}
	}
}
