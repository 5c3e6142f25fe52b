package microkernel

import (
	"strings"
	"testing"
)

// Features fall with what they stand on.
func TestFeaturesClosed(t *testing.T) {
	for have, want := range map[Features]Features{
		HasAVX512 | HasVNNI:                         0,
		HasAVX2 | HasVNNI | HasAVXVNNI:              HasAVX2 | HasAVXVNNI,
		HasAVX2 | HasAVX512 | HasVNNI | HasDotProd:  HasAVX2 | HasAVX512 | HasVNNI,
		HasNEON | HasDotProd | HasI8MM | HasAVXVNNI: HasNEON | HasDotProd | HasI8MM,
		HasNEON | HasSME512 | HasSMEInt8:            HasNEON,
	} {
		if got := have.closed(); got != want {
			t.Errorf("%s: %s, want %s", have, got, want)
		}
	}
}

func TestHostLimit(t *testing.T) {
	t.Setenv(HostVariable, "avx2,avx513")
	if err := HostError(); err == nil || !strings.Contains(err.Error(), "avx513") {
		t.Errorf("error %v", err)
	}
	t.Setenv(HostVariable, "avx2,avx512")
	if f, set, err := hostLimit(); !set || err != nil || f != HasAVX2|HasAVX512 {
		t.Errorf("%s, %v, %v", f, set, err)
	}
}
