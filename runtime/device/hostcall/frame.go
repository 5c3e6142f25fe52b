package hostcall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"
)

// Frame makes calls of one thread and allocates the memory of their arguments. It is valid only
// inside the function that [Thread.With] calls.
type Frame struct {
	// Limit is the duration after which a call counts as hung.
	Limit time.Duration

	thread *Thread
	used   int
	err    error // of the first allocation that failed
}

// With calls f with exclusive use of the thread and its scratch memory, which is zeroed as it is
// allocated.
func (t *Thread) With(f func(*Frame) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return t.process.Err()
	}
	return f(&Frame{Limit: t.process.limit, thread: t})
}

// Block is scratch memory at the same address in both processes. Reads of distinct words are
// independent: the child may write at any time.
type Block struct {
	data []byte
	addr uint64
}

// Alloc returns n zero bytes, aligned to 64. If the scratch memory is full, the next call fails.
func (f *Frame) Alloc(n int) Block {
	at := (f.used + 63) &^ 63
	if n < 0 || n > len(f.thread.scratch)-at {
		f.err = fmt.Errorf("%d bytes of arguments do not fit into %d bytes of scratch memory", n, len(f.thread.scratch))
		return Block{data: make([]byte, max(0, min(n, 1<<20))+8)}
	}
	f.used = at + n
	data := f.thread.scratch[at : at+n : at+n]
	clear(data)
	return Block{data, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(f.thread.scratch)))) + uint64(at)}
}

// Call makes one call and returns its result.
func (f *Frame) Call(function uint64, args ...uint64) (uint64, error) {
	calls := []Call{{Function: function, Args: args}}
	_, err := f.Do(calls)
	return calls[0].Result, err
}

// Do makes the calls of one request, at most 25, in order. It returns the number of completed
// calls: all of them, or those before the first checked call with a non-zero result.
func (f *Frame) Do(calls []Call) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.thread.do(calls, f.Limit)
}

// String returns a zero-terminated copy of s.
func (f *Frame) String(s string) Block {
	b := f.Alloc(len(s) + 1)
	copy(b.data, s)
	return b
}

// Bytes returns a copy of data.
func (f *Frame) Bytes(data []byte) Block {
	b := f.Alloc(len(data))
	copy(b.data, data)
	return b
}

// Words returns a copy of words.
func (f *Frame) Words(words []uint32) Block {
	b := f.Alloc(4 * len(words))
	for i, w := range words {
		binary.NativeEndian.PutUint32(b.data[4*i:], w)
	}
	return b
}

// Struct returns memory with the fields as C lays them out. A field is an int or uint32 (32 bits),
// a uint64, a float32, a [Block] (its address) or a []uint32 (in place).
func (f *Frame) Struct(fields ...any) Block {
	var b []byte
	align := func(n int) {
		for len(b)%n != 0 {
			b = append(b, 0)
		}
	}
	for _, field := range fields {
		switch v := field.(type) {
		case int:
			align(4)
			b = binary.NativeEndian.AppendUint32(b, uint32(v))
		case uint32:
			align(4)
			b = binary.NativeEndian.AppendUint32(b, v)
		case float32:
			align(4)
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(v))
		case uint64:
			align(8)
			b = binary.NativeEndian.AppendUint64(b, v)
		case Block:
			align(8)
			b = binary.NativeEndian.AppendUint64(b, v.addr)
		case []uint32:
			align(4)
			for _, w := range v {
				b = binary.NativeEndian.AppendUint32(b, w)
			}
		default:
			f.err = errors.Join(f.err, fmt.Errorf("a C structure cannot have a field of type %T", field))
		}
	}
	align(8)
	return f.Bytes(b)
}

// Addr returns the address of the memory in both processes.
func (b Block) Addr() uint64 { return b.addr }

// At returns the address of a byte of the block.
func (b Block) At(offset int) uint64 { return b.addr + uint64(offset) }

// U32 reads the word at an offset that is a multiple of 4.
func (b Block) U32(offset int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&b.data[offset : offset+4][0])))
}

// U64 reads the word at an offset that is a multiple of 8.
func (b Block) U64(offset int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b.data[offset : offset+8][0])))
}

// PutU32 writes the word at an offset.
func (b Block) PutU32(offset int, v uint32) { binary.NativeEndian.PutUint32(b.data[offset:], v) }

// PutU64 writes the word at an offset.
func (b Block) PutU64(offset int, v uint64) { binary.NativeEndian.PutUint64(b.data[offset:], v) }

// Copy returns a copy of the first n bytes of the block, or of all if it has fewer.
func (b Block) Copy(n int) []byte {
	return append([]byte(nil), b.data[:min(max(n, 0), len(b.data))]...)
}

// CString returns a copy of the zero-terminated string at offset, at most n bytes of it and not
// beyond the block.
func (b Block) CString(offset, n int) string {
	text := append([]byte(nil), b.data[offset:min(len(b.data), offset+n)]...)
	for i, c := range text {
		if c == 0 {
			return string(text[:i])
		}
	}
	return string(text)
}
