package topotree

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sandwich/internal/message"
	"sandwich/topotree/internal/verify"
)

// Apply returns the result of a transform of t. The error says why the transform does not fit. Both
// trees share unchanged nodes.
func (t *Tree) Apply(x Transform) (*Tree, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	if x.Op != OpOnly && x.D > t.Depth() {
		return nil, fmt.Errorf("%s: the tree ends at depth %d", x, t.Depth())
	}
	if x.Op == OpGroup && slices.ContainsFunc(t.transforms(), func(o Transform) bool { return o.Op != OpGroup }) {
		return nil, fmt.Errorf("%s: groups come before removes: apply it first", x)
	}
	next := &Tree{base: t.Base(), info: t.info, ops: append(t.Transforms(), x)}
	next.once.Do(func() {})
	e := editor{tree: next, x: x}
	if err := e.fits(t); err != nil {
		return nil, err
	}
	next.setRoot(e.edit(t.Root(), 0))
	if x.Op == OpGroup {
		if err := checkAlike(next.Level(x.D), x.D); err != nil {
			return nil, fmt.Errorf("%s: groups would mix colors unevenly: %w", x, err)
		}
	}
	if verify.Trees {
		if err := next.Check(); err != nil {
			return nil, fmt.Errorf("%s broke the tree: %w", x, err)
		}
	}
	return next, nil
}

// ApplyAll applies transforms in order.
func (t *Tree) ApplyAll(xs ...Transform) (*Tree, error) {
	for _, x := range xs {
		next, err := t.Apply(x)
		if err != nil {
			return nil, err
		}
		t = next
	}
	return t, nil
}

func (t *Tree) setRoot(root *Node) {
	t.root, t.digest, t.pus = root, root.digest, root.CPUs.Count()
}

// editor applies one transform to the nodes of a tree.
type editor struct {
	tree *Tree // the new tree, for computing digests
	x    Transform
}

// fits returns an error if the transform cannot be applied to t.
func (e editor) fits(t *Tree) error {
	x := e.x
	if x.Op == OpOnly {
		if kept, _ := e.keep(t.Root()); kept.IsEmpty() {
			return fmt.Errorf("%s: no PU has that color", x)
		}
		return nil
	}
	touched := 0
	for _, parent := range t.Level(x.D - 1) {
		n := len(parent.Children)
		if x.Op == OpGroup && n%(x.N*x.T) != 0 {
			how := fmt.Sprintf("%d at a time", x.N)
			if x.T > 1 {
				how += fmt.Sprintf(" with stride %d", x.T)
			}
			return fmt.Errorf("%s: %d children per parent at depth %d cannot be grouped %s", x, n, x.D-1, how)
		}
		if x.Op == OpRemove && e.touches(parent) {
			touched++
			if x.N >= n {
				return fmt.Errorf("%s: a %s at depth %d has %d children and must keep at least one", x,
					parent.Kind, x.D-1, n)
			}
		}
	}
	if x.Op == OpRemove && touched == 0 {
		return fmt.Errorf("%s: no node at depth %d has color %s, only %s", x, x.D-1, x.Color, colorsOf(t.Level(x.D-1)))
	}
	return nil
}

// colorsOf lists the colors of a level for an error message.
func colorsOf(level []*Node) string {
	colors := map[Color]bool{}
	for _, n := range level {
		colors[n.Color] = true
	}
	var names []string
	for _, c := range sortedKeys(colors) {
		names = append(names, c.String())
	}
	return message.Clip(strings.Join(names, ", "), 60)
}

func (e editor) touches(parent *Node) bool { return e.x.Color == "" || e.x.Color == parent.Color }

// edit returns the transformed node: n itself if nothing below it changes, nil if it loses all its
// PUs.
func (e editor) edit(n *Node, depth int) *Node {
	switch {
	case e.x.Op == OpOnly:
		return e.only(n)
	case depth == e.x.D-1 && e.x.Op == OpGroup:
		return e.withChildren(n, e.group(n.Children))
	case depth == e.x.D-1:
		if !e.touches(n) {
			return n
		}
		return e.withChildren(n, n.Children[:len(n.Children)-e.x.N])
	}
	children := make([]*Node, len(n.Children))
	changed := false
	for i, c := range n.Children {
		children[i] = e.edit(c, depth+1)
		changed = changed || children[i] != c
	}
	if !changed {
		return n
	}
	return e.withChildren(n, children)
}

// withChildren returns a copy of a node with other children. It keeps the color, which identifies
// the class of the original node.
func (e editor) withChildren(n *Node, children []*Node) *Node {
	out := *n
	out.Children = slices.Clone(children)
	slices.SortFunc(out.Children, compareNodes)
	out.CPUs = unionOf(out.Children)
	return e.tree.seal(&out)
}

func unionOf(nodes []*Node) CPUSet {
	sets := make([]CPUSet, len(nodes))
	for i, n := range nodes {
		sets[i] = n.CPUs
	}
	return UnionOf(sets)
}

// group returns the new nodes of one parent.
func (e editor) group(children []*Node) []*Node {
	n, t := e.x.N, e.x.T
	var out []*Node
	for block := 0; block < len(children); block += n * t {
		for r := range t {
			g := &Node{Kind: KindGroup, ID: len(out), Stride: t}
			for i := range n {
				g.Children = append(g.Children, children[block+r+i*t])
			}
			out = append(out, e.sealGroup(g))
		}
	}
	return out
}

// sealGroup completes a group node whose children are set: its color, PUs, and the positions of the
// fundamental children that it holds directly or through nested groups.
func (e editor) sealGroup(g *Node) *Node {
	var positions []int
	for _, c := range g.Children {
		g.Color = g.Color.Union(c.Color)
		positions = append(positions, c.Positions()...)
	}
	slices.Sort(positions)
	g.pos = positions[0]
	for i := range positions {
		positions[i] -= g.pos
	}
	g.offsets = positions
	g.CPUs = unionOf(g.Children)
	return e.tree.seal(g)
}

// Positions returns the position of a node among its siblings of the fundamental tree, or those of
// the fundamental nodes in a group, ascending.
func (n *Node) Positions() []int {
	if n.offsets == nil {
		return []int{n.pos}
	}
	out := slices.Clone(n.offsets)
	for i := range out {
		out[i] += n.pos
	}
	return out
}

// keep returns the PUs of n that have the color of the transform, and whether these are all of
// them.
func (e editor) keep(n *Node) (CPUSet, bool) {
	if len(n.Children) == 0 {
		if n.Color != "" && e.x.Color.Union(n.Color) == e.x.Color {
			return n.CPUs, true
		}
		return CPUSet{}, false
	}
	var kept CPUSet
	all := true
	for _, c := range n.Children {
		k, whole := e.keep(c)
		kept = kept.Union(k)
		all = all && whole
	}
	return kept, all
}

func (e editor) only(n *Node) *Node {
	if len(n.Children) == 0 {
		if _, whole := e.keep(n); whole {
			return n
		}
		return nil
	}
	var children []*Node
	changed := false
	for _, c := range n.Children {
		k := e.only(c)
		if changed = changed || k != c; k != nil {
			children = append(children, k)
		}
	}
	switch {
	case len(children) == 0:
		return nil
	case !changed:
		return n
	}
	return e.withChildren(n, children)
}

// compareNodes defines the canonical order of siblings: by color, digest, and position in the
// fundamental tree, where equal nodes are ordered by their lowest PU.
func compareNodes(a, b *Node) int {
	return cmp.Or(cmp.Compare(a.Color, b.Color), bytes.Compare(a.digest[:], b.digest[:]), cmp.Compare(a.pos, b.pos))
}

// Full returns t without its removals, only with its groups.
func (t *Tree) Full() *Tree {
	if t.source != nil {
		return t.source.Full()
	}
	ops := t.transforms()
	groups := slices.DeleteFunc(slices.Clone(ops), func(x Transform) bool { return x.Op != OpGroup })
	if len(groups) == len(ops) {
		return t
	}
	full := t.Base()
	for i, x := range groups { // groups precede removals, so they fit
		next := &Tree{base: t.Base(), info: t.info, ops: groups[: i+1 : i+1]}
		next.once.Do(func() {})
		next.setRoot(editor{tree: next, x: x}.edit(full.Root(), 0))
		full = next
	}
	return full
}

// WithInterchangeable returns the fundamental tree with a mark that makes groups of different
// strides equal, for machines whose siblings were measured to be interchangeable. Without the mark
// the digest of a group includes which siblings it took.
func (t *Tree) WithInterchangeable() *Tree {
	base := t.Base()
	info := *base.info
	info.interchangeable = true
	out := &Tree{info: &info}
	out.once.Do(func() {})
	out.setRoot(base.Root())
	return out
}
