package heuristic

import (
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/section"
)

// MakeRanks divides PUs among n ranks: along a section of the topology tree that has n parts of
// these PUs (Sandwich 5.3), else into contiguous ranges of the tree's leaves. Each rank is bound to
// the NUMA node that holds all of its PUs, if there is one.
func MakeRanks(p *profiles.Profile, pus plans.PUSet, n int) ([]plans.Rank, error) {
	if n < 1 || n > len(pus) {
		return nil, fmt.Errorf("%d ranks on %d PUs (%s): use from 1 rank to as many as PUs", n, len(pus), pus)
	}
	if n == 1 {
		return []plans.Rank{{PUs: pus, NUMANode: commonNode(p.Machine, pus)}}, nil
	}
	parts := alongTree(p.Machine, pus, n)
	out := make([]plans.Rank, n)
	for i, part := range parts {
		slices.Sort(part)
		out[i] = plans.Rank{PUs: part, NUMANode: commonNode(p.Machine, part)}
	}
	return out, nil
}

// alongTree divides PUs into n nonempty parts.
func alongTree(m *topotree.Machine, pus plans.PUSet, n int) []plans.PUSet {
	order := pus
	if tree, err := m.Usable(); err == nil {
		for _, s := range section.Of(tree) {
			if parts := partsOf(s, pus); s.TP == n && len(parts) == n {
				return parts
			}
		}
		order = leaves(tree, pus)
	}
	out := make([]plans.PUSet, n)
	for i := range out {
		out[i] = slices.Clone(order[i*len(order)/n : (i+1)*len(order)/n])
	}
	return out
}

// partsOf returns the PUs of each rank of a section, or nil if some PU is in no rank.
func partsOf(s section.Section, pus plans.PUSet) (out []plans.PUSet) {
	found := 0
	for _, r := range s.Ranks {
		if part := pus.Intersect(plans.PUSet(r.Prefill.Slice())); len(part) > 0 {
			out = append(out, part)
			found += len(part)
		}
	}
	if found < len(pus) {
		return nil
	}
	return out
}

// leaves returns the PUs in the order of the tree, so that adjacent ones share caches and nodes.
func leaves(tree *topotree.Tree, pus plans.PUSet) (out plans.PUSet) {
	tree.Walk(func(n *topotree.Node, _ int) bool {
		if n.Kind == topotree.KindPU {
			out = append(out, pus.Intersect(plans.PUSet(n.CPUs.Slice()))...)
		}
		return true
	})
	for _, pu := range pus {
		if !slices.Contains(out, pu) {
			out = append(out, pu)
		}
	}
	return out
}

// FirstOfEach returns n of the active PUs in ascending order: the first of each rank, then the
// second of each, and so on.
func FirstOfEach(ranks []plans.Rank, active plans.PUSet, n int) (out plans.PUSet) {
	for index := 0; len(out) < n; index++ {
		for _, r := range ranks {
			seen := 0
			for _, pu := range active {
				if !slices.Contains(r.PUs, pu) {
					continue
				}
				if seen == index && len(out) < n {
					out = append(out, pu)
				}
				seen++
			}
		}
	}
	slices.Sort(out)
	return out
}

// commonNode returns the NUMA node that holds all PUs, or -1.
func commonNode(m *topotree.Machine, pus plans.PUSet) int {
	return m.CommonNode(topotree.NewCPUSet(pus...))
}
