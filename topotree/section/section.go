// Package section divides a tree into ranks: each depth of the tree is one way to divide it
// (Sandwich 5.3).
package section

import (
	"slices"

	"sandwich/topotree"
)

// Rank is one thread group of a section: a node with the PUs of both phases.
type Rank struct {
	Prefill topotree.CPUSet   `json:"prefill"` // PUs of the node before removals
	Decode  topotree.CPUSet   `json:"decode"`  // PUs that are left
	NUMA    []int             `json:"numa"`    // NUMA nodes of the prefill PUs, -1 for PUs in no node
	LLC     []topotree.CPUSet `json:"llc"`     // last-level caches that they use, whole or in part
	Color   topotree.Color    `json:"color"`
}

// Section is a horizontal cut through a tree (Sandwich 5.3): its nodes are the ranks of one
// parallel scheme for both phases. Prefill runs on all PUs of each rank, decode on those that
// remain after removals.
type Section struct {
	Depth   int           `json:"depth"`
	Kind    topotree.Kind `json:"kind"`
	TP      int           `json:"tp"`      // tensor-parallel degree: the number of ranks
	Even    bool          `json:"even"`    // all ranks have equal PU counts, in prefill and in decode
	Repeats bool          `json:"repeats"` // has the same ranks as the section above
	Ranks   []Rank        `json:"ranks"`   // ordered by lowest PU
}

// PrefillPUs returns the PUs that prefill uses.
func (s Section) PrefillPUs() topotree.CPUSet {
	return s.union(func(r Rank) topotree.CPUSet { return r.Prefill })
}

// DecodePUs returns the PUs that decode uses.
func (s Section) DecodePUs() topotree.CPUSet {
	return s.union(func(r Rank) topotree.CPUSet { return r.Decode })
}

func (s Section) union(of func(Rank) topotree.CPUSet) topotree.CPUSet {
	var all topotree.CPUSet
	for _, r := range s.Ranks {
		all = all.Union(of(r))
	}
	return all
}

// Of returns the section of each depth of t, from the root down. A node without remaining PUs
// is no rank in either phase, since its part of the weights would have no PU in decode.
func Of(t *topotree.Tree) []Section {
	full := t.Full()
	c := cutter{numa: full.LevelOf(topotree.KindNUMA), llc: lastCacheLevel(full), full: full}
	c.nodeOf, c.cacheOf = c.byCPU(c.numa), c.byCPU(c.llc)
	var out []Section
	for d := 0; d <= t.Depth(); d++ {
		s := c.section(t.Level(d), full.Level(d), d)
		if last := len(out) - 1; last >= 0 {
			s.Repeats = sameCut(out[last], s)
		}
		out = append(out, s)
	}
	return out
}

func sameCut(a, b Section) bool {
	return slices.EqualFunc(a.Ranks, b.Ranks, func(x, y Rank) bool {
		return x.Prefill.Equal(y.Prefill) && x.Decode.Equal(y.Decode)
	})
}

// lastCacheLevel returns the depth of the largest cache of t, -1 if there is none.
func lastCacheLevel(t *topotree.Tree) int {
	for _, kind := range []topotree.Kind{topotree.KindL4, topotree.KindL3, topotree.KindL2} {
		if d := t.LevelOf(kind); d >= 0 {
			return d
		}
	}
	return -1
}

// cutter maps PUs to their NUMA node and last-level cache.
type cutter struct {
	full      *topotree.Tree
	numa, llc int // depths, -1 if the tree has no such level
	nodeOf    map[int]*topotree.Node
	cacheOf   map[int]*topotree.Node
}

// byCPU returns the node of a level of the full tree that holds each PU, none if depth is negative.
func (c *cutter) byCPU(depth int) map[int]*topotree.Node {
	nodes := map[int]*topotree.Node{}
	if depth < 0 {
		return nodes
	}
	for _, n := range c.full.Level(depth) {
		for cpu := range n.CPUs.All() {
			nodes[cpu] = n
		}
	}
	return nodes
}

func (c *cutter) section(nodes, full []*topotree.Node, depth int) Section {
	owner := map[int]*topotree.Node{} // node of the full tree, by PU
	for _, n := range full {
		for cpu := range n.CPUs.All() {
			owner[cpu] = n
		}
	}
	s := Section{Depth: depth, Kind: nodes[0].Kind, TP: len(nodes), Even: true}
	for _, n := range nodes {
		r := Rank{Prefill: owner[n.CPUs.First()].CPUs, Decode: n.CPUs, Color: n.Color}
		for cpu := range r.Prefill.All() {
			id := -1
			if node := c.nodeOf[cpu]; node != nil && !node.Virtual {
				id = node.ID
			}
			if !slices.Contains(r.NUMA, id) {
				r.NUMA = append(r.NUMA, id)
			}
			if cache := c.cacheOf[cpu]; cache != nil && !cache.Virtual &&
				!slices.ContainsFunc(r.LLC, func(s topotree.CPUSet) bool { return s.Contains(cpu) }) {
				r.LLC = append(r.LLC, cache.CPUs)
			}
		}
		s.Ranks = append(s.Ranks, r)
	}
	slices.SortFunc(s.Ranks, func(a, b Rank) int { return a.Prefill.First() - b.Prefill.First() })
	for _, r := range s.Ranks {
		first := s.Ranks[0]
		s.Even = s.Even && r.Prefill.Count() == first.Prefill.Count() && r.Decode.Count() == first.Decode.Count()
	}
	return s
}
