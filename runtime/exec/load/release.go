package load

import (
	"sync"

	"sandwich/runtime/gguf"
)

// releases are packed tensors whose pages are to be released, in pieces.
type releases struct {
	mu   sync.Mutex
	list []*gguf.Tensor
	at   int // piece of the first one
}

func (r *releases) add(t *gguf.Tensor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, t)
}

// next hands out the next piece.
func (r *releases) next() (t *gguf.Tensor, piece int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return nil, 0
	}
	t, piece = r.list[0], r.at
	r.at++
	return t, piece
}

// last notes that a tensor has no further pieces.
func (r *releases) last(t *gguf.Tensor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) > 0 && r.list[0] == t {
		r.list, r.at = r.list[1:], 0
	}
}

// release releases the pages of packed tensors. It reports false if it stopped because another user
// of the cores waits.
func (l *loading) release() bool {
	for {
		t, piece := l.packed.next()
		if t == nil {
			return true
		}
		if !t.ReleasePiece(piece) {
			l.packed.last(t)
		}
		if l.yields() {
			return false
		}
	}
}
