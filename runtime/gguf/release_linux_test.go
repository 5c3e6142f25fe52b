package gguf

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sandwich/runtime/background"
)

// TestReleasePieces checks the number of pieces in which the pages of mapped data of some sizes are
// released, and that the data can be read again.
func TestReleasePieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	const size = 2*releaseBytes + 12345
	if err := os.WriteFile(path, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	m, err := mapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	page := os.Getpagesize()
	for _, c := range []struct{ lo, hi, pieces int }{
		{0, size, 3}, {0, 2 * releaseBytes, 2}, {page, page + releaseBytes, 1}, {1, 2 + releaseBytes, 1},
		{0, releaseBytes + page, 2}, {1, page, 1}, {5, 5, 1},
	} {
		pieces := 0
		each := background.Run(func(piece func() bool) {
			for pieces++; piece(); pieces++ {
			}
		})
		(&Tensor{Data: m.data[c.lo:c.hi], part: m}).Release(each)
		if pieces != c.pieces {
			t.Errorf("bytes %d to %d: %d pieces, want %d", c.lo, c.hi, pieces, c.pieces)
		}
	}
	(&File{parts: []*mapping{m}}).Release(nil)
	if !bytes.Equal(m.data[:5], []byte("GGUF\x00")) {
		t.Errorf("the file begins with %q", m.data[:5])
	}
}
