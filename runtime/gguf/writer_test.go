package gguf

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"reflect"
	"syscall"
	"testing"
)

// fillSample writes every kind of value and three tensors of odd sizes.
func fillSample(w *Writer) {
	w.SetString("general.architecture", "llama")
	w.SetUint32("u32", math.MaxUint32)
	w.setInt32("i32", -7)
	w.setUint64("u64", math.MaxUint64)
	w.SetFloat32("f32", 1e-5)
	w.SetBool("yes", true)
	w.SetBool("no", false)
	w.SetStrings("strings", []string{"", "a", "▁the", "\x00\xff"})
	w.SetFloats("floats", []float32{1, -2.5})
	w.SetInts("ints", []int32{-1, math.MaxInt32})
	w.SetStrings("none", nil)
	w.AddTensor("a", F32, 3)
	w.AddTensor("b", Q8_0, 32, 5)
	w.AddTensor("c", F16, 1, 1, 7)
	data := make([]byte, 12+170+14)
	for i := range data {
		data[i] = byte(i)
	}
	w.Write(data[:5]) // pieces that end inside, at and beyond tensors
	w.Write(data[5:12])
	w.Write(data[12:190])
	w.Write(data[190:])
}

// TestWriterRoundTrip reads back what was written, and writes it again to the same bytes.
func TestWriterRoundTrip(t *testing.T) {
	raw := written(t, fillSample)
	f, err := Parse(raw)
	must(t, err)
	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	check("architecture", f.Architecture(), "llama")
	u, ok := f.Uint("u32")
	check("u32", []any{u, ok}, []any{uint64(math.MaxUint32), true})
	u, ok = f.Uint("i32")
	check("i32 as unsigned", []any{u, ok}, []any{uint64(0), false})
	i, ok := f.Int("i32")
	check("i32", []any{i, ok}, []any{int64(-7), true})
	u, ok = f.Uint("u64")
	check("u64", []any{u, ok}, []any{uint64(math.MaxUint64), true})
	i, ok = f.Int("u64")
	check("u64 as signed", []any{i, ok}, []any{int64(0), false})
	x, ok := f.Float("f32")
	check("f32", []any{x, ok}, []any{float64(float32(1e-5)), true})
	_, ok = f.Float("u32")
	check("u32 as float", ok, false)
	b, ok := f.Bool("yes")
	check("yes", []any{b, ok}, []any{true, true})
	b, ok = f.Bool("no")
	check("no", []any{b, ok}, []any{false, true})
	ss, ok := f.Strings("strings")
	check("strings", []any{ss, ok}, []any{[]string{"", "a", "▁the", "\x00\xff"}, true})
	ss, ok = f.Strings("none")
	check("none", []any{len(ss), ok}, []any{0, true})
	fs, ok := f.Floats("floats")
	check("floats", []any{fs, ok}, []any{[]float32{1, -2.5}, true})
	is, ok := f.Ints("ints")
	check("ints", []any{is, ok}, []any{[]int32{-1, math.MaxInt32}, true})
	_, ok = f.Ints("floats")
	check("floats as ints", ok, false)
	_, ok = f.String("absent")
	check("absent", ok, false)
	check("text", []string{f.Text("i32"), f.Text("strings"), f.Text("f32"), f.Text("yes"), f.Text("absent")},
		[]string{"-7", "4 x string", "1e-05", "true", ""})

	c, ok := f.Tensor("c")
	if !ok || !reflect.DeepEqual(c.Dims, []int{1, 1, 7}) || c.Data[0] != 182 || len(c.Data) != 14 {
		t.Errorf("c = %+v, %v", c, ok)
	}
	if again := written(t, fillSample); !bytes.Equal(raw, again) {
		t.Error("the same calls gave other bytes")
	}
}

// TestWriterRefuses checks that each misuse is refused, and that the failed file does not appear.
func TestWriterRefuses(t *testing.T) {
	for name, fill := range map[string]func(w *Writer){
		"key twice": func(w *Writer) { w.SetBool("k", true); w.SetBool("k", true) },
		"tensor twice": func(w *Writer) {
			w.AddTensor("t", F32, 1)
			w.AddTensor("t", F32,
				1)
			w.Write(make([]byte, 8))
		},
		"part of block":  func(w *Writer) { w.AddTensor("t", Q8_0, 33); w.Write(make([]byte, 34)) },
		"unknown type":   func(w *Writer) { w.AddTensor("t", 16, 256) },
		"zero dimension": func(w *Writer) { w.AddTensor("t", F32, 4, 0) },
		"negative":       func(w *Writer) { w.AddTensor("t", F32, -4) },
		"no dimension":   func(w *Writer) { w.AddTensor("t", F32) },
		"too little":     func(w *Writer) { w.AddTensor("t", F32, 2); w.Write(make([]byte, 7)) },
		"too much":       func(w *Writer) { w.AddTensor("t", F32, 2); w.Write(make([]byte, 9)) },
		"key late":       func(w *Writer) { w.AddTensor("t", F32, 2); w.Write(make([]byte, 8)); w.SetBool("k", true) },
	} {
		w := NewWriter(io.Discard)
		fill(w)
		if err := w.Close(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// broken is a file that cannot be written.
type broken struct{ error }

func (b broken) Write([]byte) (int, error) { return 0, b.error }

// TestWriterReportsFault checks that the fault of the output is returned unchanged, since it names
// the operation and the file.
func TestWriterReportsFault(t *testing.T) {
	fault := &fs.PathError{Op: "write", Path: "m.gguf", Err: syscall.ENOSPC}
	for _, size := range []int{8, 1 << 20} { // more than the buffer: Write fails, too
		w := NewWriter(broken{fault})
		w.AddTensor("a", F32, size)
		_, err := w.Write(make([]byte, 4*size))
		if err == nil {
			err = w.Close()
		}
		if err != error(fault) {
			t.Errorf("%d elements: %v, want %v", size, err, fault)
		}
	}
}
