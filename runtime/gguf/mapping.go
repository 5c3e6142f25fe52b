package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"unsafe"
)

// ErrChanged is wrapped by errors about a file that another program wrote to while it was read.
var ErrChanged = errors.New("the file was truncated or overwritten while it was read")

// mapping is one part's bytes, which belong to the file: a process that may write to it may change
// them, or take them away.
type mapping struct {
	path   string
	data   []byte
	file   *os.File    // held open, to ask whether it changed
	opened fs.FileInfo // as it was mapped
	unmap  func() error
}

func (m *mapping) close() error { return errors.Join(m.unmap(), m.file.Close()) }

// holds tells whether an address lies in the mapping.
func (m *mapping) holds(addr uintptr) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	return addr >= start && addr-start < uintptr(len(m.data))
}

// changed is the sentence about this part.
func (m *mapping) changed() error {
	return fmt.Errorf("%s: %w: copy or download it again, and replace a model by renaming a complete file over it",
		m.path, ErrChanged)
}

// check finds out whether the file was written to since it was opened, as far as its size and time
// tell.
func (m *mapping) check() error {
	st, err := m.file.Stat()
	if err != nil {
		return err
	}
	if st.Size() != m.opened.Size() || !st.ModTime().Equal(m.opened.ModTime()) {
		return m.changed()
	}
	return nil
}

// guard calls read, which reads the mapping on this goroutine. Where a page is gone (the file was
// cut, or its disk failed), the system's signal would end the process: here it becomes an error.
func (m *mapping) guard(read func() error) error { return guard([]*mapping{m}, read) }

func guard(parts []*mapping, read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		fault, ok := p.(interface{ Addr() uintptr })
		if ok {
			for _, m := range parts {
				if m.holds(fault.Addr()) {
					err = m.changed()
					return
				}
			}
		}
		panic(p) // a fault elsewhere is a bug, not a file
	}()
	return read()
}

// Guard calls read, which reads Data of the file's tensors on this goroutine, and returns its
// error. Data that is gone because the file was truncated is an error that wraps [ErrChanged]
// instead of the end of the process. What read made until then must not be used.
func (f *File) Guard(read func() error) error { return guard(f.parts, read) }

// Guard is [File.Guard] for the Data of one tensor.
func (t *Tensor) Guard(read func() error) error {
	if t.part == nil {
		return read()
	}
	return t.part.guard(read)
}

// Check returns an error that wraps [ErrChanged] if the tensor's file was written to since it was
// opened, as far as its size and modification time show. Callers check after they have read the
// data.
func (t *Tensor) Check() error {
	if t.part == nil {
		return nil
	}
	return t.part.check()
}
