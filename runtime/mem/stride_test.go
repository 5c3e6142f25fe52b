package mem

import "testing"

// Rows of a buffer that the model does not use take no memory; others begin on a cache line, and
// not all in one set of the cache.
func TestPaddedStride(t *testing.T) {
	if s := RowStride(0); s != 0 {
		t.Errorf("a row of nothing has stride %d", s)
	}
	for width := 1; width < 5000; width++ {
		s := RowStride(width)
		if s < width || s > width+31 || s%16 != 0 || s%256 == 0 {
			t.Fatalf("a row of %d floats has stride %d", width, s)
		}
	}
}
