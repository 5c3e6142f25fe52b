package gguf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/refdata"
)

// TestOpenReferenceModels opens every reference model and looks at what each of them must have.
func TestOpenReferenceModels(t *testing.T) {
	for _, path := range refdata.Glob(t, "parity/models/*.gguf") {
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
				before := bytes.Clone(ten.Data)
				if ten.Release(nil); !bytes.Equal(ten.Data, before) {
					t.Errorf("%s has other bytes after its pages were released", ten.Name)
				}
			}
		})
	}
}

// TestPartsJoin splits a file in three and opens it by any of its parts.
func TestPartsJoin(t *testing.T) {
	dir := t.TempDir()
	writeParts(t, dir, 3)
	for i := range 3 {
		f, err := Open(filepath.Join(dir, partFile(i, 3)))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(f.Tensors()); got != 3 {
			t.Errorf("%d tensors, want 3", got)
		}
		ten, ok := f.Tensor("t2")
		if !ok || ten.Data[0] != 2 {
			t.Errorf("t2 = %+v, %v", ten, ok)
		}
		if name, _ := f.String("general.name"); name != "split" {
			t.Errorf("general.name = %q, want that of the first part", name)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPartsRefused removes parts, renames them, and changes the numbers that they state about the
// whole.
func TestPartsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"missing": {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, partFile(1, 3)))) },
			"part 2 of 3 is missing"},
		"wrong no": {func(t *testing.T, dir string) { copyFile(t, dir, partFile(2, 3), partFile(1, 3)) },
			"its header says part 3 of 3"},
		"truncated": {func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, partFile(2, 3)), 60)) },
			"m-00003-of-00003.gguf"},
		"renamed": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, partFile(0, 3)), filepath.Join(dir, "model.gguf")))
		}, "must be named like"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeParts(t, dir, 3)
			c.spoil(t, dir)
			path := filepath.Join(dir, partFile(0, 3))
			if name == "renamed" {
				path = filepath.Join(dir, "model.gguf")
			}
			f, err := Open(path)
			if err == nil {
				t.Fatalf("accepted: %+v", f)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
	if _, err := Parse(partBytes(t, 0, 3)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Parse of one part: %v", err)
	}
}

// TestOpenRefusesNonFiles opens folders, pipes, devices and empty files.
func TestOpenRefusesNonFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.gguf")
	must(t, os.WriteFile(empty, nil, 0o666))
	for _, path := range []string{dir, empty, os.DevNull, filepath.Join(dir, "absent.gguf")} {
		if f, err := Open(path); err == nil {
			t.Errorf("%s was opened: %+v", path, f)
		}
	}
}
