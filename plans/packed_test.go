package plans

import (
	"slices"
	"testing"
)

// TestPacked checks that matrices of one type are added up, and that a table that is only looked up
// does not count.
func TestPacked(t *testing.T) {
	m := ModelShape{Weights: []WeightShape{
		{Role: RoleEmbed, N: 320, K: 256, Type: "iq2_xxs", Count: 1},
		{Role: "q", N: 256, K: 4096, Type: "iq2_xxs", Count: 2},
		{Role: "k", N: 16, K: 4096, Type: "iq2_xxs", Count: 1},
		{Role: "head", N: 320, K: 512, Type: "q8_0", Count: 1},
		{Role: "up", N: 320, K: 256, Type: "unheard", Count: 1},
	}}
	want := []TypeBytes{
		{"iq2_xxs", 66 * 16 * (2*256 + 16), 98 * 16 * (2*256 + 16)},
		{"q8_0", 34 * 16 * 320, 34 * 16 * 320},
	}
	if got := m.Packed(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
