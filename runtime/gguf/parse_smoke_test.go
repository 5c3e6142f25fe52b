package gguf

import (
	"os"
	"path/filepath"
	"testing"
)

// testdata returns the folder of the reference material, or skips the test.
func testdata(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SANDWICH_TESTDATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no reference material at %s: set SANDWICH_TESTDATA", dir)
	}
	return dir
}

// TestOpenReferenceModels opens every reference model and looks at what each of them must have.
func TestOpenReferenceModels(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata(t), "parity", "models", "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Skipf("no reference models: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if f.Size() != st.Size() {
				t.Errorf("Size() = %d, the file has %d bytes", f.Size(), st.Size())
			}
			arch := f.Architecture()
			if layers, ok := f.Uint(arch + ".block_count"); !ok || layers != 2 {
				t.Errorf("%s.block_count = %d, %v; want 2", arch, layers, ok)
			}
			toks, ok := f.Strings("tokenizer.ggml.tokens")
			if !ok || len(toks) != 320 {
				t.Errorf("vocabulary of %d tokens, %v; want 320", len(toks), ok)
			}
			emb, ok := f.Tensor("token_embd.weight")
			if !ok || len(emb.Dims) != 2 || emb.Dims[0] != 256 || emb.Dims[1] != 320 {
				t.Fatalf("token_embd.weight = %+v, %v; want 256 x 320", emb, ok)
			}
			for _, ten := range f.Tensors() {
				if want := ten.Type.RowBytes(ten.Elems()); len(ten.Data) != want {
					t.Errorf("%s has %d bytes, want %d", ten.Name, len(ten.Data), want)
				}
				if err := ten.Release(); err != nil {
					t.Errorf("releasing %s: %v", ten.Name, err)
				}
			}
		})
	}
}
