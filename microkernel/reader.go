package microkernel

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// Reader reads memory as fast as one core can, for the bandwidth ceiling. It is safe for
// concurrent use.
type Reader struct {
	ISA  ISA
	code jit.Func
}

// NewReader builds the reader of an instruction set, with software prefetch. It is plain Go for Go
// and if the system forbids executable memory.
func NewReader(isa ISA, f Features) (*Reader, error) { return newReader(isa, f, true) }

// NewLoader builds a reader without software prefetch, whose rate on memory in the first-level
// cache is that of the load ports.
func NewLoader(isa ISA, f Features) (*Reader, error) { return newReader(isa, f, false) }

func newReader(isa ISA, f Features, prefetch bool) (*Reader, error) {
	if !f.Supports(isa) {
		return nil, fmt.Errorf("%s does not run with the CPU features %q", isa, f)
	}
	if !isa.Generates() || jit.Race {
		return &Reader{ISA: isa}, nil
	}
	code, err := isa.Target().Probes.Reader(prefetch)
	if err != nil {
		return nil, err
	}
	loaded, err := jit.LoadOne(code)
	if errors.Is(err, jit.ErrNoExec) {
		return &Reader{ISA: Go}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Reader{ISA: isa, code: loaded}, nil
}

// Read reads the whole blocks of 1024 bytes in b the given number of times; b must be off the Go
// heap or kept alive. It returns the exclusive or of all words it read, which is 0 after an even
// number of passes. Go cannot preempt it: keep passes*len(b) below what 200 microseconds can read.
func (r *Reader) Read(b []byte, passes int) uint64 {
	n := len(b) / kernel.ReaderBlock
	if n == 0 || passes <= 0 {
		return 0
	}
	if !r.code.Valid() {
		var out uint64
		for range passes {
			out ^= goRead(b[:n*kernel.ReaderBlock])
		}
		return out
	}
	args := struct {
		p      unsafe.Pointer
		n      int64
		passes int64
		out    uint64
	}{unsafe.Pointer(&b[0]), int64(n), int64(passes), 0}
	r.code.Call(unsafe.Pointer(&args))
	runtime.KeepAlive(b)
	return args.out
}

// goRead is the oracle of Read: the exclusive or of all 64-bit words.
func goRead(b []byte) uint64 {
	w := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
	var s0, s1, s2, s3 uint64
	for ; len(w) >= 4; w = w[4:] {
		s0, s1, s2, s3 = s0^w[0], s1^w[1], s2^w[2], s3^w[3]
	}
	return s0 ^ s1 ^ s2 ^ s3
}
