package vecgen

import (
	"bytes"
	"testing"

	"sandwich/microkernel/internal/amd64/asm"
)

// TestGenerate: every kernel can be emitted for both levels of x86-64 and for NEON, the same bytes
// each time. What the code computes is tested in package microkernel, against the plain-Go
// definition.
func TestGenerate(t *testing.T) {
	for name, generate := range map[string]func(Kernel) ([]byte, error){
		"avx2":   func(k Kernel) ([]byte, error) { return Generate(asm.AVX2, k) },
		"avx512": func(k Kernel) ([]byte, error) { return Generate(asm.AVX512, k) },
		"neon":   GenerateNEON,
	} {
		for k := range Count {
			a, err := generate(k)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			b, _ := generate(k)
			if !bytes.Equal(a, b) {
				t.Errorf("%s kernel %d differs from one generation to the next", name, k)
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
