package spread

import (
	"slices"
	"testing"
)

// TestSummarize checks that the median of an even number of samples is between two of them, and
// that percentiles are samples.
func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3, 3, 3}},
		{[]float64{4, 1, 3, 2}, Spread{2.5, 1, 4, 1, 4}},
		{[]float64{9, 1, 8, 2, 7, 3, 6, 4, 5, 10}, Spread{5.5, 1, 10, 1, 9}},
	} {
		before := slices.Clone(c.samples)
		if got := Summarize(c.samples); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.samples, got, c.want)
		}
		if !slices.Equal(before, c.samples) {
			t.Errorf("%v were sorted in place", before)
		}
	}
}
