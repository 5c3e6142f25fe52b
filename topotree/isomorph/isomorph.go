// Package isomorph compares parts of trees: the subtrees that are left of a tree when it is limited
// to a set of PUs. Two parts are equivalent if a permutation of siblings that keeps kind and color
// maps one to the other.
package isomorph

import (
	"bytes"
	"cmp"
	"slices"

	"sandwich/topotree"
	"sandwich/topotree/internal/merkle"
)

// Digest returns the Merkle hash of the part of a fundamental tree that a set of PUs selects. It
// covers the kinds and colors of the whole tree, so PUs of different core types or memory classes
// have different digests, but neither the order of siblings nor PU indexes.
func Digest(t *topotree.Tree, pus topotree.CPUSet) topotree.Digest {
	return partOf(t.Root(), pus).hash
}

// Mapping assigns the objects of one part to those of an equivalent one.
type Mapping struct {
	PUs   map[int]int
	Nodes map[int]int // NUMA nodes, by OS index; empty if the trees have no level of them
}

// Map returns a mapping of one part of a tree to a part of another one, and false if they are not
// equivalent. Siblings with equal subtrees are paired in the order of their lowest PUs, so equal
// parts of equally numbered trees are mapped to themselves.
func Map(from *topotree.Tree, fromPUs topotree.CPUSet, to *topotree.Tree, toPUs topotree.CPUSet) (Mapping, bool) {
	a, b := partOf(from.Root(), fromPUs), partOf(to.Root(), toPUs)
	if a.hash != b.hash {
		return Mapping{}, false
	}
	m := Mapping{PUs: map[int]int{}, Nodes: map[int]int{}}
	m.add(a, b)
	return m, true
}

// Set returns the images of a set of PUs. PUs without an image are left out.
func (m Mapping) Set(pus topotree.CPUSet) topotree.CPUSet {
	var out []int
	for pu := range pus.All() {
		if to, ok := m.PUs[pu]; ok {
			out = append(out, to)
		}
	}
	return topotree.NewCPUSet(out...)
}

// Identity reports whether the mapping changes no index.
func (m Mapping) Identity() bool {
	for _, indexes := range []map[int]int{m.PUs, m.Nodes} {
		for from, to := range indexes {
			if from != to {
				return false
			}
		}
	}
	return true
}

func (m Mapping) add(a, b *part) {
	switch a.node.Kind {
	case topotree.KindPU:
		m.PUs[a.node.ID] = b.node.ID
	case topotree.KindNUMA:
		if !a.node.Virtual {
			m.Nodes[a.node.ID] = b.node.ID
		}
	}
	for i := range a.children {
		m.add(a.children[i], b.children[i])
	}
}

// part is a node of a tree without the children that have none of the selected PUs.
type part struct {
	node     *topotree.Node
	hash     merkle.Hash
	first    int     // lowest selected PU
	children []*part // by hash, then by first
}

// partOf returns the part of the subtree of n with the selected PUs.
func partOf(n *topotree.Node, pus topotree.CPUSet) *part {
	p := &part{node: n, first: n.CPUs.Intersect(pus).First()}
	var hashes []merkle.Children
	for _, c := range n.Children {
		if c.CPUs.Intersects(pus) {
			p.children = append(p.children, partOf(c, pus))
		}
	}
	slices.SortFunc(p.children, func(a, b *part) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.first, b.first))
	})
	for _, c := range p.children {
		hashes = append(hashes, merkle.Children{Hash: c.hash, Count: 1})
	}
	p.hash = merkle.Sum(merkle.Label{Kind: uint8(n.Kind), Virtual: n.Virtual, Color: string(n.Color)}, hashes)
	return p
}
