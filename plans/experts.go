package plans

import "math"

// Routed says that a weight is of experts, of which each row takes some.
func (s ModelShape) Routed(w WeightShape) bool {
	return s.Experts > 0 && (w.Role == "gate" || w.Role == "up" || w.Role == "down")
}

// PerRow is how many matrices of a weight a row is multiplied by: all, or its experts'.
func (s ModelShape) PerRow(w WeightShape) float64 {
	if !s.Routed(w) {
		return float64(w.Count)
	}
	return float64(w.Count) * float64(s.ExpertsUsed) / float64(s.Experts)
}

// Read is how many matrices of a weight a forward of m rows is expected to read.
func (s ModelShape) Read(w WeightShape, m int) float64 {
	if !s.Routed(w) {
		return float64(w.Count)
	}
	return float64(w.Count) * Reached(s.ExpertsUsed, s.Experts, m)
}

// Reached is the share of E experts, of which each row takes used, that m rows are expected to
// reach: 1-(1-used/E)^m where they choose evenly and each for itself; real routers are less even
// and reach fewer.
func Reached(used, experts, m int) float64 {
	return 1 - math.Pow(1-float64(used)/float64(experts), float64(m))
}
