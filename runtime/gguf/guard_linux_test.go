package gguf

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandwich/internal/testwait"
	"sandwich/profiles/retention"
)

// bigFile writes a file with one f32 tensor of 1 MiB and opens it.
func bigFile(t *testing.T) (path string, f *File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "m.gguf")
	must(t, os.WriteFile(path, written(t, func(w *Writer) {
		w.SetString("general.name", "big")
		w.SetStrings("tokenizer.ggml.tokens", []string{"one", "two"})
		w.AddTensor("t", F32, 1<<18)
		w.Write(make([]byte, 1<<20))
	}), 0o666))
	f, err := Open(path)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return path, f
}

// TestGuardSurvivesTruncation checks that reading beyond the end of a truncated file gives an
// error, by the guard of the file or of a tensor, and that the metadata can still be read.
func TestGuardSurvivesTruncation(t *testing.T) {
	path, f := bigFile(t)
	tensor, _ := f.Tensor("t")
	must(t, tensor.Check())
	must(t, os.Truncate(path, 0))
	values := make([]float32, tensor.Elems())
	read := func() error { return Dequantize(values, tensor.Type, tensor.Data) }
	for _, guard := range []func(func() error) error{f.Guard, tensor.Guard} {
		err := guard(read)
		if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), path+": the file was truncated or "+
			"overwritten while it was read: ") {
			t.Errorf("reading a truncated file: %v", err)
		}
	}
	if err := tensor.Check(); !errors.Is(err, ErrChanged) {
		t.Errorf("Check of a truncated file: %v", err)
	}
	if name, _ := f.String("general.name"); name != "big" {
		t.Errorf("general.name is %q", name)
	}
	if tokens, ok := f.Strings("tokenizer.ggml.tokens"); !ok || len(tokens) != 2 || tokens[1] != "two" {
		t.Errorf("the tokens are %q", tokens)
	}
}

// TestGuardLetsOtherFaultsThrough checks that faults outside the file's memory are not converted to
// errors.
func TestGuardLetsOtherFaultsThrough(t *testing.T) {
	_, f := bigFile(t)
	defer func() {
		if recover() == nil {
			t.Error("a panic of its own came back as an error")
		}
	}()
	_ = f.Guard(func() error { panic("mine") })
}

// TestMetadataOutlivesOverwriting overwrites the header in place, with lengths that would lead
// beyond the file.
func TestMetadataOutlivesOverwriting(t *testing.T) {
	path, f := bigFile(t)
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = w.WriteAt(bytes.Repeat([]byte{0xFF}, 4096), 0)
	must(t, errors.Join(err, w.Close()))
	if tokens, ok := f.Strings("tokenizer.ggml.tokens"); !ok || len(tokens) != 2 || tokens[0] != "one" {
		t.Errorf("the tokens are %q", tokens)
	}
}

// TestOpenRefusesSpecialFiles checks that Open refuses a pipe, a device, a folder and a socket
// without waiting.
func TestOpenRefusesSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe.gguf"), filepath.Join(dir, "s")
	must(t, syscall.Mkfifo(pipe, 0o666))
	l, err := net.Listen("unix", socket)
	must(t, err)
	defer l.Close()
	for _, path := range []string{pipe, "/dev/zero", dir, socket} {
		err := testwait.Returns(t, "opening "+path, func() error { _, err := Open(path); return err })
		if !errors.Is(err, retention.ErrNotRegular) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
