package plans

import "math"

// Routed reports whether a weight belongs to experts, of which each row uses some.
func (s ModelShape) Routed(w WeightShape) bool {
	return s.Experts > 0 && (w.Role == "gate" || w.Role == "up" || w.Role == "down")
}

// PerRow returns the number of matrices of a weight that a row is multiplied by: all, or those of
// its experts.
func (s ModelShape) PerRow(w WeightShape) float64 {
	if !s.Routed(w) {
		return float64(w.Count)
	}
	return float64(w.Count) * float64(s.ExpertsUsed) / float64(s.Experts)
}

// Read returns the expected number of matrices of a weight that a forward of m rows reads.
func (s ModelShape) Read(w WeightShape, m int) float64 {
	if !s.Routed(w) {
		return float64(w.Count)
	}
	return float64(w.Count) * Reached(s.ExpertsUsed, s.Experts, m)
}

// Reached returns the expected fraction of the experts that m rows use when each row uses some of
// them: 1-(1-used/experts)^m. It assumes an even and independent choice; real routers are less even
// and reach fewer experts.
func Reached(used, experts, m int) float64 {
	return 1 - math.Pow(1-float64(used)/float64(experts), float64(m))
}
