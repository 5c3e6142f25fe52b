package heuristic

import (
	"fmt"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/section"
)

// MakeRanks divides PUs among n ranks: along a section of the topology tree that has n parts of
// these PUs (Sandwich 5.3), else into contiguous ranges of the tree's leaves. Each rank is bound to
// the NUMA node that holds all of its PUs, if there is one.
func MakeRanks(p *profiles.Profile, pus topotree.CPUSet, n int) ([]plans.Rank, error) {
	if n < 1 || n > pus.Count() {
		return nil, fmt.Errorf("%d ranks on %d PUs (%s): use from 1 rank to as many as PUs", n, pus.Count(), pus)
	}
	if n == 1 {
		return []plans.Rank{{PUs: pus, NUMANode: p.Machine.CommonNode(pus)}}, nil
	}
	parts := alongTree(p.Machine, pus, n)
	out := make([]plans.Rank, n)
	for i, part := range parts {
		out[i] = plans.Rank{PUs: part, NUMANode: p.Machine.CommonNode(part)}
	}
	return out, nil
}

// alongTree divides PUs into n nonempty parts.
func alongTree(m *topotree.Machine, pus topotree.CPUSet, n int) []topotree.CPUSet {
	order := pus.Slice()
	if tree, err := m.Usable(); err == nil {
		for _, s := range section.Of(tree) {
			if parts := partsOf(s, pus); s.TP == n && len(parts) == n {
				return parts
			}
		}
		order = leaves(tree, pus)
	}
	out := make([]topotree.CPUSet, n)
	for i := range out {
		out[i] = topotree.NewCPUSet(order[i*len(order)/n : (i+1)*len(order)/n]...)
	}
	return out
}

// partsOf returns the PUs of each rank of a section, or nil if some PU is in no rank.
func partsOf(s section.Section, pus topotree.CPUSet) (out []topotree.CPUSet) {
	found := 0
	for _, r := range s.Ranks {
		if part := pus.Intersect(r.Prefill); !part.IsEmpty() {
			out = append(out, part)
			found += part.Count()
		}
	}
	if found < pus.Count() {
		return nil
	}
	return out
}

// leaves returns the PUs in the order of the tree, so that adjacent ones share caches and nodes.
func leaves(tree *topotree.Tree, pus topotree.CPUSet) (out []int) {
	tree.Walk(func(n *topotree.Node, _ int) bool {
		if n.Kind == topotree.KindPU && n.CPUs.In(pus) {
			out = append(out, n.ID)
		}
		return true
	})
	return append(out, pus.Minus(tree.CPUs()).Slice()...)
}

// FirstOfEach returns n of the active PUs, which are ordered by preference: the first of each rank,
// then the second of each, and so on. n must not exceed their number.
func FirstOfEach(ranks []plans.Rank, active []int, n int) topotree.CPUSet {
	var out []int
	for index := 0; len(out) < n; index++ {
		for _, r := range ranks {
			seen := 0
			for _, pu := range active {
				if !r.PUs.Contains(pu) {
					continue
				}
				if seen == index && len(out) < n {
					out = append(out, pu)
				}
				seen++
			}
		}
	}
	return topotree.NewCPUSet(out...)
}
