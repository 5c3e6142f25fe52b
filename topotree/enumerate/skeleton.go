package enumerate

import (
	"fmt"
	"slices"

	"sandwich/topotree"
)

// skeleton is a flat copy of the tree before removals. It gives the PUs of a choice without
// building a tree for each of the many choices of an enumeration.
type skeleton struct {
	full  *topotree.Tree // with groups only
	nodes []bone         // parents first, children from left to right
	words int            // words of the set of all PUs
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
		var groups []topotree.Transform
		for _, x := range r.q.ops {
			if x.Op == topotree.OpGroup {
				groups = append(groups, x)
			}
		}
		s := &skeleton{full: r.w.grown(groups)}
		root := s.full.Root()
		for _, x := range r.q.ops {
			if x.Op == topotree.OpOnly {
				root = applied(s.full, x).Root()
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
func (w *walk) grown(groups []topotree.Transform) *topotree.Tree {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.fulls {
		if slices.Equal(t.Transforms(), groups) {
			return t
		}
	}
	t := applied(w.tree.Base(), groups...)
	w.fulls = append(w.fulls, t)
	return t
}

// applied applies transforms that the walk over classes has found to fit.
func applied(t *topotree.Tree, xs ...topotree.Transform) *topotree.Tree {
	out, err := t.ApplyAll(xs...)
	if err != nil {
		panic(fmt.Sprintf("enumerate: %v does not fit: %v", xs, err))
	}
	return out
}

// grow appends a node with its descendants and returns its index.
func (s *skeleton) grow(r *removal, n *topotree.Node, depth int) int32 {
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

// CPUs returns the PUs that the choice keeps.
func (c *choice) CPUs() topotree.CPUSet {
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
	return topotree.CPUSetFromWords(words)
}

// Full returns the tree of the choice without removals.
func (c *choice) Full() *topotree.Tree { return c.of.skeleton().full }
