package microkernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
)

// TestUnpackGivesTheRowsOfTheFile checks that unpacking a matrix gives the bits of its rows in the
// file, signed zeros included: a model whose head is its embedding looks up its tokens there.
func TestUnpackGivesTheRowsOfTheFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, typ := range qtype.All() {
		for _, shape := range [][2]int{{1, 256}, {17, 512}, {50, 1024}} {
			n, k := shape[0], shape[1]
			if typ.Block() == 1 {
				k -= rng.IntN(9)
			}
			t.Run(fmt.Sprintf("%s/%dx%d", typ, n, k), func(t *testing.T) { checkUnpack(t, rng, typ, n, k) })
		}
	}
}

func checkUnpack(t *testing.T, rng *rand.Rand, typ microkernel.WeightType, n, k int) {
	file, err := gguf.ParseType(typ.String())
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, n*k)
	for i := range values {
		if values[i] = float32(rng.NormFloat64()); rng.IntN(8) == 0 {
			values[i] = 0
		}
	}
	raw := make([]byte, n*file.RowBytes(k))
	if err := gguf.Quantize(raw, file, values); err != nil {
		t.Fatal(err)
	}
	want := make([]float32, n*k)
	if err := gguf.Dequantize(want, file, raw); err != nil {
		t.Fatal(err)
	}
	l := microkernel.Layout{Type: typ, N: n, K: k}
	packed := make([]byte, l.Bytes())
	if err := microkernel.Pack(packed, l, 0, n, raw, 0); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, k)
	for row := range n {
		if err := microkernel.Unpack(got, packed, l, row, 0, k); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			if w := want[row*k+i]; math.Float32bits(g) != math.Float32bits(w) {
				t.Fatalf("row %d k %d: %v (%x), the file has %v (%x)", row, i, g, math.Float32bits(g), w,
					math.Float32bits(w))
			}
		}
	}
}

// BenchmarkUnpack reads the rows of 512 tokens of llama-160m's width.
func BenchmarkUnpack(b *testing.B) {
	for _, typ := range []microkernel.WeightType{microkernel.F32, microkernel.F16, microkernel.Q8_0, microkernel.Q4_K,
		microkernel.Q6_K} {
		b.Run(typ.String(), func(b *testing.B) {
			l := microkernel.Layout{Type: typ, N: 32000, K: 768}
			packed, row := make([]byte, l.Bytes()), make([]float32, l.K)
			for b.Loop() {
				for i := range 512 {
					if err := microkernel.Unpack(row, packed, l, i*7919%l.N, 0, l.K); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
