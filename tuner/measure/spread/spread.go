// Package spread summarizes the samples of a measurement.
package spread

import (
	"slices"

	"sandwich/internal/num"
	"sandwich/plans/evidence"
)

// Spread holds the median, the minimum, the maximum, and the 10th and 90th percentiles of samples.
type Spread struct{ Median, Min, Max, P10, P90 float64 }

// Summarize returns the spread of samples, zeros for none.
func Summarize(samples []float64) Spread {
	if len(samples) == 0 {
		return Spread{}
	}
	s := slices.Sorted(slices.Values(samples))
	return Spread{num.Median(s), s[0], s[len(s)-1], num.Quantile(s, 0.1), num.Quantile(s, 0.9)}
}

// MedianInterval returns the 95 % interval of the median by order statistics (evidence.MedianRank),
// which assumes no distribution of the noise, or 0 and 0 for fewer than six samples.
func MedianInterval(samples []float64) (low, high float64) {
	const minimum = 6
	n := len(samples)
	if n < minimum {
		return 0, 0
	}
	s, rank := slices.Sorted(slices.Values(samples)), evidence.MedianRank(n)
	return s[rank], s[n-1-rank]
}
