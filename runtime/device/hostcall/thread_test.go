package hostcall

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestReplies checks replies of a server that the test plays, in ordinary memory.
func TestReplies(t *testing.T) {
	for name, c := range map[string]struct {
		done, left uint32
		want       string
	}{
		"true":          {done: 1},
		"too many left": {done: 1, left: 9, want: "invalid reply: 9 of 1 calls left"},
		"huge left":     {done: 1, left: math.MaxUint32, want: "invalid reply"},
		"later request": {done: 2, want: "invalid reply: request 2 done, 1 expected"},
		"none":          {done: 0, want: "took longer than 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			memory := make([]uint64, sharedBytes/8)
			p := &Process{limit: 50 * time.Millisecond, shared: unsafe.Pointer(&memory[0]), lost: make(chan struct{})}
			th := p.newThread(0, 6)
			th.word(boxLeft).Store(c.left)
			th.word(boxDone).Store(c.done) // the reply is there before the request
			err := th.With(func(f *Frame) error {
				_, err := f.Call(1)
				return err
			})
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestFrame checks the layout of structures and the refusal of too large arguments.
func TestFrame(t *testing.T) {
	memory := make([]uint64, sharedBytes/8)
	p := &Process{limit: time.Second, shared: unsafe.Pointer(&memory[0]), lost: make(chan struct{})}
	th := p.newThread(1, 6)
	err := th.With(func(f *Frame) error {
		inner := f.Words([]uint32{1, 2, 3})
		b := f.Struct(5, inner, float32(1), uint64(1)<<40, []uint32{8, 9}, 7)
		one := math.Float32bits(1)
		for offset, want := range map[int]uint32{0: 5, 4: 0, 16: one, 24: 0, 28: 1 << 8, 32: 8, 36: 9, 40: 7} {
			if got := b.U32(offset); got != want {
				t.Errorf("offset %d: %d, want %d", offset, got, want)
			}
		}
		if b.U64(8) != inner.Addr() || inner.U32(8) != 3 || b.Addr()%64 != 0 {
			t.Errorf("address %#x, inner %#x", b.Addr(), b.U64(8))
		}
		b.PutU64(16, 1<<33)
		b.PutU32(40, 3)
		if b.U32(20) != 2 || b.U32(40) != 3 || b.At(4) != b.Addr()+4 {
			t.Error("words were not stored")
		}
		text := f.Bytes([]byte("abc\x00def"))
		if text.CString(0, 9) != "abc" || text.CString(4, 2) != "de" || text.CString(4, 100) != "def" {
			t.Errorf("%q", text.CString(4, 100))
		}
		f.Alloc(scratchBytes)
		_, err := f.Call(1)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Errorf("too large arguments: %v", err)
	}
	err = th.With(func(f *Frame) error {
		f.Struct(int8(1))
		_, err := f.Call(1)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "int8") {
		t.Errorf("a field of an unknown type: %v", err)
	}
}
