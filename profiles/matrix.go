package profiles

import (
	"slices"

	"sandwich/topotree"
)

// MatrixNames are the matrices that a full probe may measure.
func MatrixNames() []string {
	return []string{LatencyMatrix, ComputeMatrix, CacheMatrix, MemoryMatrix, NodeMatrix}
}

// Meaning says what the matrix holds, for people; "" for one that is not known.
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

// Values lists what was measured, ascending; of nodes the diagonal counts too.
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

// HiddenSets are the innermost clusters that were found and the tree does not show, to be drawn in
// it.
func (p *Profile) HiddenSets() []topotree.CPUSet {
	for _, l := range p.Latent {
		if l.Known == "" {
			return l.Sets
		}
	}
	return nil
}
