package mem

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func alloc(t testing.TB, size int, o Options) *Buffer {
	t.Helper()
	b, err := Alloc(size, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestBufferIsZeroedAlignedAndWritable(t *testing.T) {
	for _, o := range []Options{{Node: AnyNode}, {}, {Huge: true, Touch: true}, {Node: AnyNode, Huge: true}} {
		for _, size := range []int{0, 1, 4095, 4097, hugeSize, hugeSize + 1, 3*hugeSize - 1} {
			b := alloc(t, size, o)
			data := b.Bytes()
			if len(data) < max(size, 1) || len(data)%pageSize != 0 || b.Len() != len(data) || b.Node() != o.Node {
				t.Fatalf("%+v: %d bytes asked, %d given on node %d", o, size, len(data), b.Node())
			}
			unit := pageSize
			if o.Huge && Mapped && size >= hugeSize {
				unit = hugeSize
			}
			if uintptr(b.Pointer())%uintptr(unit) != 0 {
				t.Errorf("%+v: %d bytes at %p, not a multiple of %d", o, size, b.Pointer(), unit)
			}
			for i, v := range data {
				if v != 0 {
					t.Fatalf("byte %d is %d", i, v)
				}
				data[i] = byte(i * 7)
			}
			b.Touch(0, len(data))
			b.Touch(len(data)/3, len(data)/3+1)
			for i, v := range data {
				if v != byte(i*7) {
					t.Fatalf("touching changed byte %d", i)
				}
			}
			if f := b.Float32s(); len(f) != len(data)/4 {
				t.Errorf("%d floats in %d bytes", len(f), len(data))
			}
		}
	}
}

func TestTotalIsAccounted(t *testing.T) {
	before := Total()
	b, err := Alloc(10*pageSize-3, Options{Node: AnyNode})
	if err != nil {
		t.Fatal(err)
	}
	if got := Total() - before; got != int64(10*pageSize) {
		t.Errorf("%d bytes accounted, want %d", got, 10*pageSize)
	}
	if err := errors.Join(b.Free(), b.Free()); err != nil {
		t.Error(err)
	}
	if Total() != before {
		t.Errorf("%d bytes remain accounted after Free", Total()-before)
	}
}

func TestTooMuchIsRefusedWithNumbers(t *testing.T) {
	for _, size := range []int{1 << 45, 1 << 47, math.MaxInt} {
		_, err := Alloc(size, Options{Node: AnyNode})
		if !errors.Is(err, ErrNoMemory) || !strings.Contains(err.Error(), FormatBytes(int64(size))) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := Alloc(-1, Options{}); err == nil {
		t.Error("a negative size was accepted")
	}
}

func TestRemote(t *testing.T) {
	r := Residency{Pages: map[int]int{0: 3, 2: 1}}
	if r.Remote(0) != 0.25 || r.Remote(1) != 1 || (Residency{}).Remote(0) != 0 {
		t.Errorf("remote fractions %v %v", r.Remote(0), r.Remote(1))
	}
}

func TestFormatBytes(t *testing.T) {
	for want, n := range map[string]int64{"0 B": 0, "1023 B": 1023, "1.5 KiB": 1536, "3.0 GiB": 3 << 30,
		"1024.0 TiB": 1 << 50} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func BenchmarkAllocTouch(b *testing.B) {
	for name, o := range map[string]Options{"base": {Node: AnyNode, Touch: true}, "huge": {Node: AnyNode, Huge: true,
		Touch: true}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(64 << 20)
			for b.Loop() {
				if err := alloc(b, 64<<20, o).Free(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
