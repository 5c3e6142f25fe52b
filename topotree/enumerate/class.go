package enumerate

import (
	"bytes"
	"cmp"
	"slices"

	"sandwich/topotree"
	"sandwich/topotree/internal/merkle"
)

// class represents all nodes of one depth and color. They are isomorphic, so transforms affect them
// alike. A tree has few classes, and Trees works on classes only.
type class struct {
	kind    topotree.Kind
	virtual bool
	color   topotree.Color
	offsets []int // of the siblings in a group, from the lowest; nil for hardware
	digest  topotree.Digest
	pus     int
	kids    []kid // in canonical order
}

// kid is one child of each node of a class.
type kid struct {
	*class
	pos int // lowest of Node.Positions
}

// classOf returns the class of a node. Nodes with equal digests share a class.
func classOf(n *topotree.Node, known map[topotree.Digest]*class) *class {
	if c, ok := known[n.Digest()]; ok {
		return c
	}
	c := &class{kind: n.Kind, virtual: n.Virtual, color: n.Color, digest: n.Digest(), pus: n.CPUs.Count()}
	if n.Stride > 0 {
		_, c.offsets = fromLowest(n.Positions())
	}
	for _, child := range n.Children {
		c.kids = append(c.kids, kid{classOf(child, known), child.Positions()[0]})
	}
	known[c.digest] = c
	return c
}

// fromLowest returns the lowest of ascending positions, and all of them relative to it.
func fromLowest(positions []int) (lowest int, offsets []int) {
	lowest = positions[0]
	for i := range positions {
		positions[i] -= lowest
	}
	return lowest, positions
}

// like returns a new class with the label of c.
func (c *class) like() *class {
	return &class{kind: c.kind, virtual: c.virtual, color: c.color, offsets: c.offsets}
}

// classTree is a tree of classes that transforms are applied to.
type classTree struct {
	root            *class
	ops             []topotree.Transform
	interchangeable bool
}

// seal computes digest and size from the children.
func (q classTree) seal(c *class) *class {
	children := make([]merkle.Children, 0, len(c.kids))
	c.pus = 0
	for _, k := range c.kids {
		c.pus += k.pus
		if last := len(children) - 1; last >= 0 && children[last].Hash == k.digest {
			children[last].Count++
			continue
		}
		children = append(children, merkle.Children{Hash: k.digest, Count: 1})
	}
	c.digest = merkle.Sum(q.labelOf(c), children)
	return c
}

// labelOf returns what the hash of a class covers in addition to its children.
func (q classTree) labelOf(c *class) merkle.Label {
	l := merkle.Label{Kind: uint8(c.kind), Virtual: c.virtual, Color: string(c.color)}
	if !q.interchangeable {
		l.Offsets = c.offsets
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
func (q classTree) group(x topotree.Transform, levels [][]*class) (classTree, bool) {
	for _, parent := range levels[x.D-1] {
		if len(parent.kids)%(x.N*x.T) != 0 {
			return q, false
		}
	}
	out := classTree{ops: append(slices.Clone(q.ops), x), interchangeable: q.interchangeable}
	mapped := map[*class]*class{}
	alike := map[topotree.Color]*class{} // the new classes
	for _, parent := range levels[x.D-1] {
		p := parent.like()
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
			p := c.like()
			p.kids = slices.Clone(c.kids)
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

// groupOf makes the group of every t-th of n children from the first. Equal groups share a class.
func (q classTree) groupOf(from []kid, x topotree.Transform, alike map[topotree.Color]*class) (kid, bool) {
	g := &class{kind: topotree.KindGroup}
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
	base, offsets := fromLowest(positions)
	g.offsets = offsets
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
func (q classTree) only(c *class, color topotree.Color, memo map[*class]*class) *class {
	if out, ok := memo[c]; ok {
		return out
	}
	var out *class
	if len(c.kids) == 0 {
		if c.color == color {
			out = c
		}
	} else {
		kept := c.like()
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
