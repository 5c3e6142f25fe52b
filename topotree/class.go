package topotree

import (
	"bytes"
	"cmp"
	"slices"
)

// class represents all nodes of one depth and color. They are isomorphic, so transforms affect them
// alike. A tree has few classes, and Enumerate works on classes only.
type class struct {
	label
	digest Digest
	pus    int
	kids   []kid // in canonical order
}

// kid is one child of each node of a class.
type kid struct {
	*class
	pos int // see Node.pos
}

// classOf returns the class of a node. Nodes with equal digests share a class.
func classOf(t *Tree, n *Node, known map[Digest]*class) *class {
	if c, ok := known[n.digest]; ok {
		return c
	}
	c := &class{label: t.labelOf(n), digest: n.digest, pus: n.CPUs.Count()}
	c.offsets = n.offsets
	for _, child := range n.Children {
		c.kids = append(c.kids, kid{classOf(t, child, known), child.pos})
	}
	known[n.digest] = c
	return c
}

// classTree is a tree of classes that transforms are applied to.
type classTree struct {
	root            *class
	ops             []Transform
	interchangeable bool
}

// seal computes digest and size from the kids.
func (q classTree) seal(c *class) *class {
	children := make([]childCount, 0, len(c.kids))
	c.pus = 0
	for _, k := range c.kids {
		c.pus += k.pus
		if last := len(children) - 1; last >= 0 && children[last].digest == k.digest {
			children[last].count++
			continue
		}
		children = append(children, childCount{k.digest, 1})
	}
	c.digest = merkle(q.labelOf(c), children)
	return c
}

// labelOf returns what the hash of a class covers in addition to its children.
func (q classTree) labelOf(c *class) label {
	l := c.label
	if q.interchangeable {
		l.offsets = nil
	}
	return l
}

// levels returns the distinct classes of each depth in the order of their first occurrence.
func (q classTree) levels() [][]*class {
	levels := [][]*class{{q.root}}
	for {
		var next []*class
		for _, c := range levels[len(levels)-1] {
			for _, k := range c.kids {
				if !slices.Contains(next, k.class) {
					next = append(next, k.class)
				}
			}
		}
		if len(next) == 0 {
			return levels
		}
		levels = append(levels, next)
	}
}

// group applies group(n,t,d). It returns false if the group does not fit or would mix colors
// unevenly.
func (q classTree) group(x Transform, levels [][]*class) (classTree, bool) {
	for _, parent := range levels[x.D-1] {
		if len(parent.kids)%(x.N*x.T) != 0 {
			return q, false
		}
	}
	out := classTree{ops: append(slices.Clone(q.ops), x), interchangeable: q.interchangeable}
	mapped := map[*class]*class{}
	alike := map[Color]*class{} // the new classes
	for _, parent := range levels[x.D-1] {
		p := &class{label: parent.label}
		for block := 0; block < len(parent.kids); block += x.N * x.T {
			for r := range x.T {
				k, ok := out.groupOf(parent.kids[block+r:], x, alike)
				if !ok {
					return q, false
				}
				p.kids = append(p.kids, k)
			}
		}
		sortKids(p.kids)
		mapped[parent] = out.seal(p)
	}
	for d := x.D - 2; d >= 0; d-- {
		for _, c := range levels[d] {
			p := &class{label: c.label, kids: slices.Clone(c.kids)}
			for i := range p.kids {
				p.kids[i].class = mapped[p.kids[i].class]
			}
			sortKids(p.kids)
			mapped[c] = out.seal(p)
		}
	}
	out.root = mapped[q.root]
	return out, true
}

// groupOf makes the group of every t-th of n kids from the first. Equal groups share a class.
func (q classTree) groupOf(from []kid, x Transform, alike map[Color]*class) (kid, bool) {
	g := &class{label: label{kind: KindGroup}}
	var positions []int
	for i := range x.N {
		k := from[i*x.T]
		g.kids = append(g.kids, k)
		g.color = g.color.Union(k.color)
		if k.offsets == nil {
			positions = append(positions, k.pos)
		}
		for _, o := range k.offsets {
			positions = append(positions, k.pos+o)
		}
	}
	slices.Sort(positions)
	base := positions[0]
	for i := range positions {
		positions[i] -= base
	}
	g.offsets = positions
	sortKids(g.kids)
	q.seal(g)
	first, seen := alike[g.color]
	if !seen {
		alike[g.color] = g
		first = g
	}
	return kid{first, base}, first.digest == g.digest
}

func sortKids(kids []kid) {
	slices.SortFunc(kids, func(a, b kid) int {
		return cmp.Or(cmp.Compare(a.color, b.color), bytes.Compare(a.digest[:], b.digest[:]), cmp.Compare(a.pos, b.pos))
	})
}

// only keeps the PUs of one color. It returns nil if no PU has it.
func (q classTree) only(c *class, color Color, memo map[*class]*class) *class {
	if out, ok := memo[c]; ok {
		return out
	}
	var out *class
	if len(c.kids) == 0 {
		if c.color == color {
			out = c
		}
	} else {
		kept := &class{label: c.label}
		for _, k := range c.kids {
			if sub := q.only(k.class, color, memo); sub != nil {
				kept.kids = append(kept.kids, kid{sub, k.pos})
			}
		}
		if len(kept.kids) > 0 {
			sortKids(kept.kids)
			out = q.seal(kept)
		}
	}
	memo[c] = out
	return out
}
