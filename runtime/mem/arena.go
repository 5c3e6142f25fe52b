package mem

import (
	"fmt"
	"sync/atomic"
)

// Arena hands out tensors of one buffer, in order and never returned one by one. Safe for concurrent use.
type Arena struct {
	buffer *Buffer
	size   int
	used   atomic.Int64
}

// NewArena maps size bytes for tensors, each of which takes a multiple of Align. The errors are those of Alloc.
func NewArena(size int, o Options) (*Arena, error) {
	b, err := Alloc(size, o)
	if err != nil {
		return nil, err
	}
	return &Arena{buffer: b, size: roundUp(size, Align)}, nil
}

// Alloc takes n zeroed bytes, aligned to Align. It fails with ErrNoMemory when the arena is used up.
func (a *Arena) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("a tensor of %d bytes cannot be made", n)
	}
	if n > a.size {
		return nil, a.full(n)
	}
	take := int64(roundUp(n, Align))
	hi := a.used.Add(take)
	if hi > int64(a.size) {
		a.used.Add(-take)
		return nil, a.full(n)
	}
	lo := hi - take
	return a.buffer.data[lo : lo+int64(n) : hi], nil
}

func (a *Arena) full(n int) error {
	return fmt.Errorf("%w: a tensor of %s was asked of an arena of %s with %s used", ErrNoMemory,
		FormatBytes(int64(n)), FormatBytes(int64(a.size)), FormatBytes(a.used.Load()))
}

// AllocFloat32s takes n zeroed floats, aligned to Align.
func (a *Arena) AllocFloat32s(n int) ([]float32, error) {
	if n > a.size {
		return nil, a.full(n)
	}
	b, err := a.Alloc(4 * n)
	if err != nil {
		return nil, err
	}
	return Float32s(b), nil
}

// Used is the number of bytes handed out, alignment included.
func (a *Arena) Used() int { return int(a.used.Load()) }

// Cap is the number of bytes in all.
func (a *Arena) Cap() int { return a.size }

// Buffer is the memory behind the arena.
func (a *Arena) Buffer() *Buffer { return a.buffer }

// Free returns the memory of all tensors; see Buffer.Free.
func (a *Arena) Free() error { return a.buffer.Free() }
