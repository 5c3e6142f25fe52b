package qtype_test

import (
	"math"
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// FuzzBlocks reads random bytes as blocks of every quantized type. A block that Finite accepts has
// finite values, which a packed panel reproduces exactly; one that it refuses has a value that is
// not finite. Values that were read can be written and read again.
func FuzzBlocks(f *testing.F) {
	for _, w := range qtype.All() {
		if d := w.Desc(); w.Quantized() {
			ones, mixed := make([]byte, 2*d.Bytes), make([]byte, 2*d.Bytes)
			for i := range ones {
				ones[i], mixed[i] = 0xFF, byte(73*i+i/7)
			}
			f.Add(uint8(w), ones)
			f.Add(uint8(w), mixed)
			f.Add(uint8(w), make([]byte, 2*d.Bytes))
		}
	}
	f.Fuzz(func(t *testing.T, id uint8, raw []byte) {
		w := qtype.Type(id)
		if !w.Quantized() || len(raw) < w.Desc().Bytes {
			return
		}
		d := w.Desc()
		raw = raw[:d.Bytes]
		want := make([]float32, d.Block)
		if err := gguf.Dequantize(want, gguf.Type(w), raw); err != nil {
			t.Fatal(err)
		}
		if got := d.Finite(raw); got != numbers(want) {
			t.Fatalf("%s: Finite says %v, the values are %v", w, got, want)
		}
		if !numbers(want) {
			return
		}
		l := microkernel.Layout{Type: w, N: 1, K: d.Block}
		packed := make([]byte, l.Bytes())
		if err := microkernel.Pack(packed, l, 0, 1, raw, 0); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, d.Block)
		if err := microkernel.Unpack(got, packed, l, 0, 0, d.Block); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%s: element %d is packed as %g, is %g", w, i, got[i], want[i])
			}
		}
		if err := gguf.Quantize(raw, gguf.Type(w), want); err != nil {
			t.Fatal(err)
		}
		if err := gguf.Dequantize(got, gguf.Type(w), raw); err != nil {
			t.Fatal(err)
		}
	})
}

func numbers(x []float32) bool {
	for _, v := range x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return false
		}
	}
	return true
}
