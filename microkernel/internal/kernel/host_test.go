package kernel

import (
	"strings"
	"testing"
)

// TestFeaturesClosed checks that features are dropped together with the features they need.
func TestFeaturesClosed(t *testing.T) {
	for have, want := range map[Features]Features{
		HasAVX512 | HasVNNI:                              0,
		HasAVX2 | HasVNNI | HasAVXVNNI:                   HasAVX2 | HasAVXVNNI,
		HasAVX2 | HasAVX512 | HasVNNI | HasDotProd:       HasAVX2 | HasAVX512 | HasVNNI,
		HasNEON | HasDotProd | HasI8MM | HasAVXVNNI:      HasNEON | HasDotProd | HasI8MM,
		HasNEON | HasSME512 | HasSMEInt8:                 HasNEON,
		HasAVX512 | HasAMX | HasBF16 | HasFP16 | HasVBMI: 0,
		HasDotProd | HasI8MM | HasSME | HasArmBF16:       0,
		HasAVX2 | HasAVX512 | HasAMX:                     HasAVX2 | HasAVX512 | HasAMX,
	} {
		if got := have.Closed(); got != want {
			t.Errorf("%s: %s, want %s", have, got, want)
		}
	}
}

// TestHostLimit checks that SANDWICH_FEATURES restricts the host and that errors name the value.
func TestHostLimit(t *testing.T) {
	t.Setenv(hostVariable, "avx2,avx513")
	if err := HostError(); err == nil || !strings.Contains(err.Error(), "avx513") {
		t.Errorf("error %v", err)
	}
	t.Setenv(hostVariable, "avx2,avx512")
	if f, set, err := hostLimit(); !set || err != nil || f != HasAVX2|HasAVX512 {
		t.Errorf("%s, %v, %v", f, set, err)
	}
}
