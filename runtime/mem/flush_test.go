package mem

import (
	"bytes"
	"testing"
)

// TestFlush checks that flushing changes no byte, for ranges that start and end within a line and
// for more than one call of the assembly.
func TestFlush(t *testing.T) {
	const size = 3*flushCall + 8192
	b, err := Alloc(size, Options{Node: AnyNode, Touch: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	for i := range b.Bytes() {
		b.Bytes()[i] = byte(i * 7)
	}
	want := bytes.Clone(b.Bytes())
	for _, r := range [][2]int{{0, size}, {0, 0}, {5, 5}, {0, 1}, {63, 64}, {63, 65}, {17, flushCall + 18},
		{size - 1, size}, {4096, size - 3}} {
		if done := Flush(b.Bytes()[r[0]:r[1]]); done != CanFlush() {
			t.Fatalf("Flush says %v, CanFlush %v", done, CanFlush())
		}
		if !bytes.Equal(want, b.Bytes()) {
			t.Fatalf("flushing bytes %d to %d changed them", r[0], r[1])
		}
	}
}

// BenchmarkFlush reads a megabyte that the caches hold, and one that was flushed.
func BenchmarkFlush(b *testing.B) {
	const size = 1 << 20
	m, err := Alloc(size, Options{Node: AnyNode, Huge: true, Touch: true})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Free()
	read := func() (sum byte) {
		for i := 0; i < size; i += 64 {
			sum += m.Bytes()[i]
		}
		return sum
	}
	b.Run("cached", func(b *testing.B) {
		for b.Loop() {
			read()
		}
	})
	b.Run("flushed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			Flush(m.Bytes()[:size])
			b.StartTimer()
			read()
		}
	})
	b.Run("flush", func(b *testing.B) {
		for b.Loop() {
			Flush(m.Bytes()[:size])
		}
	})
	b.Run("flush cached", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			read()
			b.StartTimer()
			Flush(m.Bytes()[:size])
		}
	})
}
