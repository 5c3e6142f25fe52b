package sys

import (
	"slices"
	"testing"
)

func TestMaskPUs(t *testing.T) {
	if got := maskPUs([]uint64{0b101, 1 << 63}); !slices.Equal(got, []int{0, 2, 127}) {
		t.Errorf("got %v", got)
	}
}
