package device

import (
	"fmt"
)

// Step is a [Launch] or a [Copy].
type Step interface{ step() }

// Slice is a buffer from an offset on.
type Slice struct {
	Buffer Buffer
	Offset uint64
}

// Launch runs a program over a grid of workgroups.
type Launch struct {
	Program Program
	Groups  [3]int
	Buffers []Slice  // by binding; offsets are multiples of 16
	Push    []uint32 // by push word
}

// Copy copies bytes between buffers. Offsets and the number of bytes are multiples of 4.
type Copy struct {
	To, From Slice
	Bytes    uint64
}

func (Launch) step() {}
func (Copy) step()   {}

// maxGroups limits the dimensions of a grid to what every API accepts.
var maxGroups = [3]int{1<<31 - 1, 65535, 65535}

// Check returns why the launch cannot run, or nil.
func (l Launch) Check() error {
	if l.Program == nil {
		return fmt.Errorf("a launch has no program")
	}
	k := l.Program.Kernel()
	if len(l.Buffers) != len(k.Bindings) || len(l.Push) != len(k.Push) {
		return fmt.Errorf("kernel %s: the launch has %d buffers and %d push words; the kernel takes %d and %d",
			k.Name, len(l.Buffers), len(l.Push), len(k.Bindings), len(k.Push))
	}
	for i, n := range l.Groups {
		if n < 1 || n > maxGroups[i] {
			return fmt.Errorf("kernel %s: a grid of %v workgroups; dimension %d must be 1 to %d", k.Name, l.Groups, i,
				maxGroups[i])
		}
	}
	for i, s := range l.Buffers {
		if s.Buffer == nil || s.Offset%16 != 0 || s.Offset >= s.Buffer.Bytes() {
			return fmt.Errorf("kernel %s: binding %s has no buffer or an invalid offset", k.Name, k.Bindings[i].Name)
		}
	}
	return nil
}

// Arguments returns the argument block of a launch: the address of each binding and the push words.
func (l Launch) Arguments(address func(Buffer) uint64) []uint32 {
	var words []uint32
	for _, s := range l.Buffers {
		at := address(s.Buffer) + s.Offset
		words = append(words, uint32(at), uint32(at>>32))
	}
	return append(words, l.Push...)
}

// Check returns why the copy cannot run, or nil.
func (c Copy) Check() error {
	for _, s := range []Slice{c.To, c.From} {
		if s.Buffer == nil {
			return fmt.Errorf("a copy lacks a buffer")
		}
		if err := CheckRange(s.Buffer, s.Offset, c.Bytes); err != nil {
			return err
		}
	}
	if c.Bytes == 0 || c.Bytes%4 != 0 || c.To.Offset%4 != 0 || c.From.Offset%4 != 0 {
		return fmt.Errorf("a copy of %d bytes from offset %d to offset %d; each must be a multiple of 4", c.Bytes,
			c.From.Offset, c.To.Offset)
	}
	return nil
}

// CheckRange returns an error if the range is not within the buffer.
func CheckRange(b Buffer, offset, bytes uint64) error {
	if size := b.Bytes(); offset > size || bytes > size-offset {
		return fmt.Errorf("%d bytes at offset %d exceed a buffer of %d bytes", bytes, offset, size)
	}
	return nil
}

// CheckSteps checks each step and calls launch or copy for it.
func CheckSteps(steps []Step, launch func(Launch) error, transfer func(Copy) error) error {
	if len(steps) == 0 {
		return fmt.Errorf("no steps to record")
	}
	for i, s := range steps {
		var err error
		switch s := s.(type) {
		case Launch:
			if err = s.Check(); err == nil {
				err = launch(s)
			}
		case Copy:
			if err = s.Check(); err == nil {
				err = transfer(s)
			}
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}
