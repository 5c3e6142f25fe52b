package main

import "slices"

// spread is the middle and the ends of some samples.
type spread struct{ median, min, max float64 }

// summarize returns the spread of samples, nil for none.
func summarize(samples []float64) *spread {
	if len(samples) == 0 {
		return nil
	}
	s := slices.Sorted(slices.Values(samples))
	mid := len(s) / 2
	median := s[mid]
	if len(s)%2 == 0 {
		median = (s[mid-1] + s[mid]) / 2
	}
	return &spread{median, s[0], s[len(s)-1]}
}
