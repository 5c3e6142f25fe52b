package gguf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, dir, from, to string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, from))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, to), b, 0o666))
}

// written returns the bytes of a small file with the given metadata and tensors.
func written(t testing.TB, fill func(w *Writer)) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	fill(w)
	must(t, w.Close())
	return buf.Bytes()
}

func partFile(no, count int) string { return fmt.Sprintf("m-%05d-of-%05d.gguf", no+1, count) }

// partBytes is part no of a file of count parts: one tensor "tNO" of 32 q8_0 elements, filled with
// the byte NO.
func partBytes(t testing.TB, no, count int) []byte {
	return written(t, func(w *Writer) {
		if no == 0 {
			w.SetString("general.name", "split")
			w.setInt32(keySplitTensors, int32(count))
		}
		w.SetUint32(keySplitNo, uint32(no))
		w.SetUint32(keySplitCount, uint32(count))
		w.AddTensor(fmt.Sprintf("t%d", no), Q8_0, 32)
		w.Write(bytes.Repeat([]byte{byte(no)}, 34))
	})
}

func writeParts(t testing.TB, dir string, count int) {
	t.Helper()
	for i := range count {
		must(t, os.WriteFile(filepath.Join(dir, partFile(i, count)), partBytes(t, i, count), 0o666))
	}
}
