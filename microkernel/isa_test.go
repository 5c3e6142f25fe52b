package microkernel

import (
	"strings"
	"testing"
)

func TestNamesRoundTrip(t *testing.T) {
	for _, i := range []ISA{Go, AVX2, AVX512, NEON} {
		got, err := ParseISA(i.String())
		if err != nil || got != i {
			t.Errorf("ParseISA(%s) = %v, %v", i, got, err)
		}
	}
	if _, err := ParseISA("avx10"); err == nil || !strings.Contains(err.Error(), "avx512") {
		t.Errorf("unknown ISA: %v", err)
	}
	f := HasAVX2 | HasVNNI | HasI8MM
	if got, err := ParseFeatures(f.String()); err != nil || got != f {
		t.Errorf("ParseFeatures(%q) = %v, %v", f, got, err)
	}
	if _, err := ParseFeatures("avx2,mmx"); err == nil {
		t.Error("mmx accepted")
	}
}
