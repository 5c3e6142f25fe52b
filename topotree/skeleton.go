package topotree

import (
	"fmt"
	"slices"
)

// skeleton is a flat copy of the tree before removals. It gives the PUs of a choice without
// building a tree for each of the many choices of an enumeration.
type skeleton struct {
	full  *Tree  // with groups only
	nodes []bone // parents first, children from left to right
	words int    // words of the set of all PUs
}

// bone is a node of the skeleton.
type bone struct {
	class int // index of its class in removal.index
	kids  []int32
	pu    int // PU of a leaf
}

// skeleton returns the skeleton, which it builds on first use.
func (r *removal) skeleton() *skeleton {
	r.once.Do(func() {
		start := r.w.tree.Base()
		var groups []Transform
		for _, x := range r.q.ops {
			if x.Op == OpGroup {
				groups = append(groups, x)
			}
		}
		s := &skeleton{full: r.w.grown(start, groups)}
		root := s.full.Root()
		for _, x := range r.q.ops {
			if x.Op == OpOnly {
				root = editor{tree: s.full, x: x}.edit(root, 0)
			}
		}
		s.words = root.CPUs.Last()/64 + 1
		s.grow(r, root, 0)
		r.bones = s
	})
	return r.bones
}

// grown applies groups to the fundamental tree. Removals of one enumeration with equal groups share
// the tree.
func (w *walk) grown(base *Tree, groups []Transform) *Tree {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.fulls {
		if slices.Equal(t.ops, groups) {
			return t
		}
	}
	t := base
	for i, x := range groups { // Enumerate uses only transforms that fit
		next := &Tree{base: base, info: w.tree.info, ops: groups[: i+1 : i+1]}
		next.once.Do(func() {})
		next.setRoot(editor{tree: next, x: x}.edit(t.Root(), 0))
		t = next
	}
	w.fulls = append(w.fulls, t)
	return t
}

// grow appends a node with its descendants and returns its index.
func (s *skeleton) grow(r *removal, n *Node, depth int) int32 {
	at := len(s.nodes)
	b := bone{pu: n.CPUs.First()}
	first := r.first[depth]
	for i := range r.levels[depth].old {
		if r.index[first+i].color == n.Color {
			b.class = first + i
		}
	}
	s.nodes = append(s.nodes, b)
	for _, c := range n.Children {
		k := s.grow(r, c, depth+1)
		s.nodes[at].kids = append(s.nodes[at].kids, k)
	}
	return int32(at)
}

// cpus returns the PUs that the choice keeps.
func (c *choice) cpus() CPUSet {
	s := c.of.skeleton()
	words := make([]uint64, s.words)
	var keep func(at int32)
	keep = func(at int32) {
		n := &s.nodes[at]
		if len(n.kids) == 0 {
			words[n.pu/64] |= 1 << (n.pu % 64)
			return
		}
		for _, k := range n.kids[:len(n.kids)-int(c.counts[n.class])] {
			keep(k)
		}
	}
	keep(0)
	return trimmed(words)
}

// build returns the root of the tree t of the choice. Enumerate uses only transforms that fit.
func (c *choice) build(t *Tree) *Node {
	root := t.base.Root()
	for _, x := range t.transforms() {
		root = editor{tree: t, x: x}.edit(root, 0)
	}
	if verify && (root.digest != t.digest || root.CPUs.Count() != t.pus) {
		panic(fmt.Sprintf("topotree: %v gives digest %s with %d PUs, expected %s with %d",
			t.transforms(), root.digest, root.CPUs.Count(), t.digest, t.pus))
	}
	return root
}

// full returns the tree of the choice without removals.
func (c *choice) full() *Tree { return c.of.skeleton().full }
