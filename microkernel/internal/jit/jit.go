// Package jit puts machine code into executable memory and calls it.
//
// Memory is written while it is writable and sealed executable before it can be called. A page is
// never both writable and executable, and never becomes writable again (W^X). If the system forbids
// making written pages executable, a memfd mapping is tried. If that fails too, Load returns
// ErrNoExec and the caller falls back to plain Go.
//
// The package imports nothing of the module.
package jit

import (
	"errors"
	"sync"
	"unsafe"
)

// ErrNoExec reports that this system forbids the process executable memory.
var ErrNoExec = errors.New("this system forbids executable memory to the process")

// Func is a generated function in executable memory. It takes one pointer to its arguments and
// follows the rules of the package microkernel: it preserves RSP, RBP, the direction flag and
// MXCSR, pushes at most 64 bytes and ends with VZEROUPPER. The zero Func is not callable.
type Func struct{ entry uintptr }

// Valid reports whether the function can be called.
func (f Func) Valid() bool { return f.entry != 0 }

// Call runs the function. Memory that the arguments point at must be off the Go heap or kept alive
// by the caller. Go cannot preempt the call, so it must last at most about 200 microseconds.
func (f Func) Call(args unsafe.Pointer) { call(f.entry, args) }

// arena is executable memory shared by many functions, which stay at their addresses until Close.
// It is safe for concurrent use.
type arena struct {
	mu     sync.Mutex
	chunks []chunk
}

// chunk is a reservation of address space, filled from the start page by page.
type chunk struct {
	mem  []byte
	used int // bytes sealed so far, whole pages
}

const (
	codeAlign  = 64
	chunkBytes = 64 << 20 // address space, not memory: pages are taken as they are written
)

// Load copies functions into the arena and returns them in the same order. A call seals whole
// pages, so load many functions together. The error wraps ErrNoExec if executable memory is
// forbidden.
func (a *arena) Load(codes ...[]byte) ([]Func, error) {
	total := 0
	for _, c := range codes {
		total += (len(c) + codeAlign - 1) &^ (codeAlign - 1)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pages, err := a.take(total)
	if err != nil {
		return nil, err
	}
	image := make([]byte, len(pages))
	for i := range image {
		image[i] = trapByte
	}
	funcs := make([]Func, len(codes))
	at := 0
	for i, c := range codes {
		if len(c) == 0 {
			continue
		}
		copy(image[at:], c)
		funcs[i] = Func{entry: uintptr(unsafe.Pointer(&pages[at]))}
		at += (len(c) + codeAlign - 1) &^ (codeAlign - 1)
	}
	if err := seal(pages, image); err != nil {
		return nil, err
	}
	return funcs, nil
}

// take returns fresh pages for n bytes.
func (a *arena) take(n int) ([]byte, error) {
	n = (max(n, 1) + pageSize - 1) &^ (pageSize - 1)
	if len(a.chunks) == 0 || a.chunks[len(a.chunks)-1].used+n > len(a.chunks[len(a.chunks)-1].mem) {
		mem, err := reserve(max(n, chunkBytes))
		if err != nil {
			return nil, err
		}
		a.chunks = append(a.chunks, chunk{mem: mem})
	}
	c := &a.chunks[len(a.chunks)-1]
	p := c.mem[c.used : c.used+n : c.used+n]
	c.used += n
	return p, nil
}

// Close unmaps the arena. None of its functions may be running or be called later.
func (a *arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, c := range a.chunks {
		errs = append(errs, release(c.mem))
	}
	a.chunks = nil
	return errors.Join(errs...)
}
