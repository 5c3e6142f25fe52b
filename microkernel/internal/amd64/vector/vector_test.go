package vector

import (
	"bytes"
	"testing"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
)

// TestOp checks that every row operation can be generated for both levels, with the same bytes each
// time. Package vec tests what the code computes.
func TestOp(t *testing.T) {
	for name, level := range map[string]asm.Level{"avx2": asm.AVX2, "avx512": asm.AVX512} {
		for op := range kernel.VectorOps {
			a, err := Generator{level}.Op(op)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			b, _ := Generator{level}.Op(op)
			if len(a) == 0 || !bytes.Equal(a, b) {
				t.Errorf("%s: two generations of operation %d differ, or there is no code", name, op)
			}
		}
	}
}

func BenchmarkGenerateAll(b *testing.B) {
	for b.Loop() {
		for op := range kernel.VectorOps {
			if _, err := (Generator{asm.AVX512}).Op(op); err != nil {
				b.Fatal(err)
			}
		}
	}
}
