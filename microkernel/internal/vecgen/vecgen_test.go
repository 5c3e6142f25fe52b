package vecgen

import (
	"bytes"
	"testing"

	"sandwich/microkernel/internal/asm"
)

// TestGenerate: every kernel can be emitted for both levels, the same bytes each time. What the code computes is tested in
// package microkernel, against the plain-Go definition.
func TestGenerate(t *testing.T) {
	for _, level := range []asm.Level{asm.AVX2, asm.AVX512} {
		for k := range Count {
			a, err := Generate(level, k)
			if err != nil {
				t.Fatalf("level %d: %v", level, err)
			}
			b, _ := Generate(level, k)
			if !bytes.Equal(a, b) {
				t.Errorf("level %d kernel %d differs from one generation to the next", level, k)
			}
		}
	}
}

func BenchmarkGenerateAll(b *testing.B) {
	for b.Loop() {
		for k := range Count {
			if _, err := Generate(asm.AVX512, k); err != nil {
				b.Fatal(err)
			}
		}
	}
}
