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

// mapping is a mapped file. A program that writes to the file changes data, and reads of data
// behind the end of a truncated file fault.
type mapping struct {
	path   string
	data   []byte
	file   *os.File    // open, for check
	opened fs.FileInfo // at the time of the mapping
	unmap  func() error
}

func (m *mapping) close() error { return errors.Join(m.unmap(), m.file.Close()) }

// holds reports whether an address is in the mapping.
func (m *mapping) holds(addr uintptr) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	return addr >= start && addr-start < uintptr(len(m.data))
}

// changed returns an error that wraps ErrChanged and names the file.
func (m *mapping) changed() error {
	return fmt.Errorf("%s: %w: copy or download it again, and replace a model by renaming a complete file over it",
		m.path, ErrChanged)
}

// check returns an error if the size or the modification time of the file changed since it was
// opened.
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

// guard is like File.Guard for one mapping.
func (m *mapping) guard(read func() error) error { return guard([]*mapping{m}, read) }

// guard calls read, which reads the mappings on this goroutine, and returns its error. A fault in a
// mapping, because the file was truncated or its disk failed, becomes an error that wraps
// ErrChanged. Other faults and panics continue.
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
		panic(p)
	}()
	return read()
}

// Guard calls read, which reads Data of the file's tensors on this goroutine, and returns its
// error. If the file was truncated, it returns an error that wraps [ErrChanged], where the fault
// would otherwise end the process. Results of read must then not be used.
func (f *File) Guard(read func() error) error { return guard(f.parts, read) }

// Guard is like [File.Guard] for the Data of one tensor.
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
