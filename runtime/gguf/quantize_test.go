package gguf

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/refdata"
)

// TestQuantizeRoundTrip bounds the error of each type by the resolution of its codes, on normal
// random data, on zeros and on constants.
func TestQuantizeRoundTrip(t *testing.T) {
	// Worst error over the largest magnitude of the 256 values: half a step of the whole range,
	// plus the coarseness of sub-block scales.
	bound := map[Type]float64{
		F32: 0, F16: 0x1p-11, BF16: 0x1p-8, Q8_0: 0.0045, Q4_0: 0.13, Q4_1: 0.07, Q5_0: 0.065, Q5_1: 0.035,
		IQ4_NL: 0.12,
		Q2_K:   0.45, Q3_K: 0.3, Q4_K: 0.1, Q5_K: 0.06, Q6_K: 0.04,
		Type(qtype.IQ4_XS): 0.15, Type(qtype.MXFP4): 0.3, Type(qtype.NVFP4): 0.3,
		Type(qtype.TQ1_0): 0.55, Type(qtype.TQ2_0): 0.55, Type(qtype.Q1_0): 1, Type(qtype.Q2_0): 0.55,
		// A word of a codebook is near to the whole wanted word, not to each of its values.
		Type(qtype.IQ3_S): 0.7, Type(qtype.IQ3_XXS): 0.7, Type(qtype.IQ2_S): 0.7, Type(qtype.IQ2_XS): 0.9,
		Type(qtype.IQ2_XXS): 1.1, Type(qtype.IQ1_S): 1.5, Type(qtype.IQ1_M): 1.5,
	}
	r := rand.New(rand.NewPCG(1, 2))
	fills := map[string]func(i int) float32{
		"normal": func(int) float32 { return float32(r.NormFloat64()) * 0.02 },
		"zero":   func(int) float32 { return 0 },
		"ones":   func(int) float32 { return 1 },
		"minus":  func(int) float32 { return -3 },
		"ramp":   func(i int) float32 { return float32(i) - 100 },
	}
	for _, typ := range readable() {
		for name, fill := range fills {
			src, back := make([]float32, 1024), make([]float32, 1024)
			for i := range src {
				src[i] = fill(i % 256)
			}
			b := bytes.Repeat([]byte{0xa5}, typ.RowBytes(len(src))) // every byte must be written
			if err := Quantize(b, typ, src); err != nil {
				t.Fatal(err)
			}
			if err := Dequantize(back, typ, b); err != nil {
				t.Fatal(err)
			}
			var amax, worst float64
			for i := range src {
				amax = max(amax, math.Abs(float64(src[i])))
				worst = max(worst, math.Abs(float64(back[i]-src[i])))
			}
			if worst > bound[typ]*amax {
				t.Errorf("%s, %s: error %g of %g, bound %g", typ, name, worst, amax, bound[typ]*amax)
			}
		}
	}
}

// TestQuantizeLikeReference compares our blocks with those that llama.cpp's quantizer made of the
// same model.
func TestQuantizeLikeReference(t *testing.T) {
	plain, err := Open(refdata.Path(t, "parity/models/llama-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, typ := range []Type{F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1} {
		f, err := Open(refdata.Path(t, "parity/models/llama-"+typ.String()+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range f.Tensors() {
			if want.Type != typ {
				continue
			}
			src, _ := plain.Tensor(want.Name)
			x := make([]float32, src.Elems())
			if err := Dequantize(x, F32, src.Data); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(want.Data))
			if err := Quantize(got, typ, x); err != nil {
				t.Fatal(err)
			}
			different := 0
			for i := range got {
				if got[i] != want.Data[i] {
					different++
				}
			}
			// Ties round by the last bit of a product; they are rare.
			if different*1000 > len(got) {
				t.Errorf("%s, %s: %d of %d bytes differ", typ, want.Name, different, len(got))
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkDequantize(b *testing.B) {
	x := make([]float32, 4096)
	for _, typ := range []Type{F16, Q8_0, Q4_0, Q4_K, Q6_K} {
		src := make([]byte, typ.RowBytes(len(x)))
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if err := Dequantize(x, typ, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 4096)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, typ := range []Type{F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K} {
		dst := make([]byte, typ.RowBytes(len(x)))
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				if err := Quantize(dst, typ, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
