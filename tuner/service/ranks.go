package service

import (
	"slices"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
)

// RankCounts lists the tensor-parallel degrees above one that are worth a measurement, ascending:
// the sections of the machine's tree whose ranks have memory nodes of their own (Sandwich 5.3, step
// 1) and that the model can be cut for. Ranks that share a node read the same memory as one rank
// would, and cost the bit-equality of rule 6.
func RankCounts(p *profiles.Profile, shape plans.ModelShape) (out []int) {
	tree, err := p.Machine.Usable()
	if err != nil {
		return nil
	}
	for _, s := range tree.Sections() {
		if s.TP > 1 && s.TP <= len(p.CorePUs()) && ownNodes(s) && shape.Partition(s.TP) == nil &&
			!slices.Contains(out, s.TP) {
			out = append(out, s.TP)
		}
	}
	slices.Sort(out)
	return out
}

// ownNodes tells whether no two ranks of a section share a NUMA node.
func ownNodes(s topotree.Section) bool {
	seen := map[int]bool{}
	for _, r := range s.Ranks {
		for _, node := range r.NUMA {
			if node < 0 || seen[node] {
				return false
			}
			seen[node] = true
		}
	}
	return true
}
