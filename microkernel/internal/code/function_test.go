package code

import (
	"bytes"
	"strings"
	"testing"
)

// TestPool checks that constants are stored once, each aligned to its length, after code that is
// padded to 64 bytes.
func TestPool(t *testing.T) {
	f := New("test")
	f.Bytes = []byte{1, 2, 3}
	word, line := []byte{1, 1, 1, 1}, bytes.Repeat([]byte{2}, 16)
	for i, c := range []struct {
		data []byte
		want int
	}{{word, 0}, {line, 16}, {word, 0}, {[]byte{3, 3, 3, 3}, 32}, {line, 16}, {[]byte{2, 2, 2, 2}, 16},
		{bytes.Repeat([]byte{4}, 64), 64}} {
		if got := f.Constant(c.data); got != c.want {
			t.Errorf("constant %d is at %d of the pool, want %d", i, got, c.want)
		}
	}
	if at := f.closePool([]byte{0xCC}); at != 64 || len(f.Bytes) != 64+128 {
		t.Errorf("a pool at %d, %d bytes", at, len(f.Bytes))
	}
	if f.Bytes[2] != 3 || f.Bytes[3] != 0xCC || f.Bytes[63] != 0xCC || !bytes.Equal(f.Bytes[80:96], line) {
		t.Errorf("% x", f.Bytes)
	}
	if f.Err() != nil {
		t.Error(f.Err())
	}
}

// TestNoPool checks that code without constants is not padded.
func TestNoPool(t *testing.T) {
	f := New("test")
	f.Bytes = []byte{1, 2, 3}
	if at := f.closePool([]byte{0xCC}); at != 3 || len(f.Bytes) != 3 {
		t.Errorf("a pool at %d, %d bytes", at, len(f.Bytes))
	}
}

func TestLabels(t *testing.T) {
	f := New("test")
	ahead := f.NewLabel()
	if _, ok := f.Bound(ahead); ok {
		t.Error("a new label is bound")
	}
	f.Bytes = append(f.Bytes, 1, 2)
	if at := f.target(f.Here()); at != 2 {
		t.Errorf("here is %d", at)
	}
	f.Bind(ahead)
	if at := f.target(ahead); at != 2 || f.Err() != nil {
		t.Errorf("the label is %d, %v", at, f.Err())
	}
}

// TestFirstFailure checks that the first failure is reported, with its place, regardless of later
// ones.
func TestFirstFailure(t *testing.T) {
	f := New("test")
	f.Bytes = []byte{1, 2}
	f.Bind(f.Here())
	f.target(f.NewLabel())
	if err := f.Err(); err == nil || !strings.Contains(err.Error(), "test: offset 2: label 0 bound twice") {
		t.Error(err)
	}
}

// TestFixups checks that a jump gets the distance to its label, and a load that to its constant
// after the padding, each from the end of its instruction, and that an unbound label is an error.
func TestFixups(t *testing.T) {
	f := New("test")
	end := f.NewLabel()
	f.Bytes = append(f.Bytes, 0)
	f.Jump(end, Fixup{At: 0, End: 1})
	f.Bytes = append(f.Bytes, 0, 0)
	f.Load(f.Constant([]byte{7, 7, 7, 7}), Fixup{At: 1})
	f.EndLoad()
	f.Bind(end)
	patch := func(x Fixup, to int) { f.Bytes[x.At] = byte(to - x.End) }
	code, err := f.Finish(patch, 0xCC)
	if err != nil || len(code) != 68 || code[0] != 2 || code[1] != 64-3 || code[64] != 7 {
		t.Errorf("% x, %v", code, err)
	}
	f = New("test")
	f.Jump(f.NewLabel(), Fixup{})
	if _, err := f.Finish(func(Fixup, int) {}); err == nil || !strings.Contains(err.Error(), "never bound") {
		t.Errorf("an unbound label: %v", err)
	}
}
