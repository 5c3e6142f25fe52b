package profiles

import (
	"slices"

	"sandwich/topotree"
)

// MatrixNames returns the names of the matrices that a full probe may measure.
func MatrixNames() []string {
	return []string{LatencyMatrix, ComputeMatrix, CacheMatrix, MemoryMatrix, NodeMatrix}
}

// Meaning describes the values of the matrix for users, "" if the name is unknown.
func (m Matrix) Meaning() string {
	switch m.Name {
	case LatencyMatrix:
		return "cache line to another PU and back"
	case ComputeMatrix:
		return "multiply-adds of two PUs: share each keeps"
	case CacheMatrix:
		return "reads of 0.6 of a last-level cache by two PUs: share each keeps"
	case MemoryMatrix:
		return "reads of memory by two PUs: share each keeps"
	case NodeMatrix:
		return "all PUs of a node read the memory of a node"
	}
	return ""
}

// Values returns the measured values in ascending order. The diagonal counts only for NodeMatrix.
func (m Matrix) Values() []float64 {
	var out []float64
	for i, row := range m.Rows {
		for j, v := range row {
			if v > 0 && (i != j || m.Name == NodeMatrix) {
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	return out
}

// HiddenSets returns the innermost measured clusters that the tree does not show, for drawings.
func (p *Profile) HiddenSets() []topotree.CPUSet {
	for _, l := range p.Latent {
		if l.Known == "" {
			return l.Sets
		}
	}
	return nil
}
