package mem

import (
	"testing"

	"sandwich/runtime/background"
)

// TestDiscardPieces checks that Discard returns all pages of buffers of some sizes in pieces, and
// that the buffers can be freed afterwards.
func TestDiscardPieces(t *testing.T) {
	before := Total()
	for _, c := range []struct {
		sizes  []int
		pieces int
	}{
		{[]int{1 << 12}, 1},
		{[]int{discardBytes}, 1},
		{[]int{discardBytes + 1, 1}, 2},
		{[]int{discardBytes / 2, discardBytes, 3 * discardBytes}, 5},
		{nil, 1},
	} {
		var list []*Buffer
		for _, size := range c.sizes {
			b, err := Alloc(size, Options{Node: AnyNode})
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < b.Len(); i += 4096 {
				b.Bytes()[i] = 1
			}
			list = append(list, b)
		}
		pieces := 0
		Discard(func(piece func() bool) {
			for pieces++; piece(); pieces++ {
			}
		}, list...)
		if pieces != c.pieces {
			t.Errorf("buffers of %v bytes: %d pieces, want %d", c.sizes, pieces, c.pieces)
		}
		for _, b := range list {
			for i := 0; i < b.Len() && Mapped; i += 4096 {
				if b.Bytes()[i] != 0 {
					t.Fatalf("buffers of %v bytes: page %d is not returned", c.sizes, i/4096)
				}
			}
			if err := b.Free(); err != nil {
				t.Error(err)
			}
		}
	}
	if n := Total(); n != before {
		t.Errorf("%d bytes are in use, and before %d", n, before)
	}
	Discard(background.In(nil))
}
