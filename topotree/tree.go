package topotree

import (
	"fmt"
	"slices"
	"sync"

	"sandwich/internal/message"
	"sandwich/topotree/internal/merkle"
)

// Node is a node of a tree: a shared resource, or a PU at the leaves. Nodes are immutable, since
// trees share them.
type Node struct {
	Kind     Kind    `json:"kind"`
	ID       int     `json:"id"` // OS index, -1 if unknown
	Color    Color   `json:"color"`
	CPUs     CPUSet  `json:"cpus"`
	Bytes    int64   `json:"bytes,omitempty"`   // size of a cache or of the memory of a NUMA node; 0 if unknown
	Stride   int     `json:"stride,omitempty"`  // stride of the group that made the node; 0 for hardware
	Virtual  bool    `json:"virtual,omitempty"` // placeholder for a level that this part of the machine lacks
	Children []*Node `json:"children,omitempty"`

	pos     int   // index among the siblings of the fundamental tree
	offsets []int // group nodes: positions of the fundamental children, from the lowest
	digest  Digest
}

// Tree is a TopoTree: a fundamental tree from a reader, or the result of transforms. It is
// immutable and may be used concurrently.
type Tree struct {
	base   *Tree // the fundamental tree; nil in the fundamental tree itself
	info   *treeInfo
	ops    []Transform
	source Source // replaces ops in a tree of NewLazyTree
	digest Digest
	pus    int
	once   sync.Once // protects root
	root   *Node
}

// treeInfo is shared by all trees that were made from one fundamental tree.
type treeInfo struct {
	palette         []ColorInfo
	splits          []string
	interchangeable bool
	memoryOnly      []MemoryOnly
}

// Root returns the root node, which has depth 0.
func (t *Tree) Root() *Node {
	t.once.Do(t.build)
	return t.root
}

// Base returns the fundamental tree from which t was made; t itself if it is fundamental.
func (t *Tree) Base() *Tree {
	if t.base == nil {
		return t
	}
	return t.base
}

// Transforms returns the transforms that lead from Base to t, in order.
func (t *Tree) Transforms() []Transform { return slices.Clone(t.transforms()) }

func (t *Tree) transforms() []Transform {
	if t.source != nil {
		return t.source.Transforms()
	}
	return t.ops
}

// Interchangeable reports whether the digests of t ignore which siblings a group took; see
// WithInterchangeable.
func (t *Tree) Interchangeable() bool { return t.info.interchangeable }

// Palette returns the basic colors, indexed by Color.Basics.
func (t *Tree) Palette() []ColorInfo { return t.info.palette }

// Splits describes where broken symmetry split a color; empty on a symmetric machine.
func (t *Tree) Splits() []string { return t.info.splits }

// MemoryOnly returns the memory nodes without PUs that are nearest to a NUMA node of the tree.
// Memory with several nearest nodes belongs to the first of them.
func (t *Tree) MemoryOnly(n *Node) []MemoryOnly {
	if n.Kind != KindNUMA || n.Virtual {
		return nil
	}
	var out []MemoryOnly
	for _, o := range t.info.memoryOnly {
		if len(o.Nearest) > 0 && o.Nearest[0] == n.ID {
			out = append(out, o)
		}
	}
	return out
}

// PUs returns the number of PUs in the tree.
func (t *Tree) PUs() int { return t.pus }

// CPUs returns the PUs in the tree. It does not build the nodes of a lazy tree.
func (t *Tree) CPUs() CPUSet {
	if t.source != nil {
		return t.source.CPUs()
	}
	return t.Root().CPUs
}

// Depth returns the depth of the PUs. The root has depth 0.
func (t *Tree) Depth() int {
	d := 0
	for n := t.Root(); len(n.Children) > 0; n = n.Children[0] {
		d++
	}
	return d
}

// Level returns the nodes of depth d in order; nil if the tree is not that deep.
func (t *Tree) Level(d int) []*Node {
	if d < 0 {
		return nil
	}
	level := []*Node{t.Root()}
	for ; d > 0 && len(level) > 0; d-- {
		var next []*Node
		for _, n := range level {
			next = append(next, n.Children...)
		}
		level = next
	}
	return level
}

// LevelOf returns the lowest depth with nodes of a kind, -1 if there is none.
func (t *Tree) LevelOf(kind Kind) int {
	d := 0
	for n := t.Root(); ; n = n.Children[0] {
		if n.Kind == kind {
			return d
		}
		if len(n.Children) == 0 {
			return -1
		}
		d++
	}
}

// Walk calls visit for all nodes with their depths, parents first. It skips the descendants of a
// node for which visit returns false.
func (t *Tree) Walk(visit func(n *Node, depth int) bool) {
	var walk func(n *Node, depth int)
	walk = func(n *Node, depth int) {
		if !visit(n, depth) {
			return
		}
		for _, c := range n.Children {
			walk(c, depth+1)
		}
	}
	walk(t.Root(), 0)
}

// Check returns an error for the first broken invariant: the root is a machine; children partition
// their parent's PUs; leaves are single PUs of one depth; nodes of one depth have one kind; a
// node's color is the union of its children's colors; nodes of one depth and color are isomorphic
// ("symmetric and tileable", Sandwich 5.2).
func (t *Tree) Check() error {
	root := t.Root()
	if root.Kind != KindMachine {
		return fmt.Errorf("the root is a %s, not a machine", root.Kind)
	}
	if root.CPUs.Count() != t.pus {
		return fmt.Errorf("the tree counts %d PUs but has %d", t.pus, root.CPUs.Count())
	}
	level := []*Node{root}
	for depth := 0; len(level) > 0; depth++ {
		if err := checkLevel(level, depth); err != nil {
			return err
		}
		var next []*Node
		for _, n := range level {
			next = append(next, n.Children...)
		}
		level = next
	}
	return nil
}

func checkLevel(level []*Node, depth int) error {
	for _, n := range level {
		if n.Kind != level[0].Kind {
			return fmt.Errorf("depth %d has nodes of kind %s and %s", depth, level[0].Kind, n.Kind)
		}
		if n.CPUs.IsEmpty() {
			return fmt.Errorf("%s %d at depth %d has no PU", n.Kind, n.ID, depth)
		}
		if err := checkChildren(n, depth); err != nil {
			return err
		}
	}
	return checkAlike(level, depth)
}

func checkChildren(n *Node, depth int) error {
	if len(n.Children) == 0 {
		if n.Kind != KindPU || n.CPUs.Count() != 1 || n.CPUs.First() != n.ID {
			return fmt.Errorf("leaf %s %d at depth %d is not one PU", n.Kind, n.ID, depth)
		}
		return nil
	}
	if n.Kind == KindPU {
		return fmt.Errorf("PU %d at depth %d has children", n.ID, depth)
	}
	var union CPUSet
	var color Color
	for _, c := range n.Children {
		if c.CPUs.Intersects(union) {
			return fmt.Errorf("children of %s %s at depth %d overlap", n.Kind, n.CPUs, depth)
		}
		union = union.Union(c.CPUs)
		color = color.Union(c.Color)
	}
	if !union.Equal(n.CPUs) {
		return fmt.Errorf("%s at depth %d has PUs %s, but its children have %s", n.Kind, depth, n.CPUs, union)
	}
	if n.Color.Union(color) != n.Color {
		return fmt.Errorf("%s %s at depth %d has color %s, but its children have %s", n.Kind, n.CPUs, depth,
			n.Color, color)
	}
	return nil
}

func (t *Tree) labelOf(n *Node) merkle.Label {
	l := merkle.Label{Kind: uint8(n.Kind), Virtual: n.Virtual, Color: string(n.Color)}
	if !t.info.interchangeable {
		l.Offsets = n.offsets
	}
	return l
}

// seal computes the digest of a node whose children have theirs.
func (t *Tree) seal(n *Node) *Node {
	children := make([]merkle.Children, len(n.Children))
	for i, c := range n.Children {
		children[i] = merkle.Children{Hash: c.digest, Count: 1}
	}
	n.digest = merkle.Sum(t.labelOf(n), children)
	return n
}

// checkAlike returns an error if two nodes of a level have the same color but distinct shapes.
func checkAlike(level []*Node, depth int) error {
	alike := map[Color]*Node{}
	for _, n := range level {
		first, seen := alike[n.Color]
		if !seen {
			alike[n.Color] = n
		} else if first.digest != n.digest {
			return fmt.Errorf("%s nodes %s and %s at depth %d have color %s but distinct shapes",
				n.Kind, message.Clip(first.CPUs.String(), 60), message.Clip(n.CPUs.String(), 60), depth, n.Color)
		}
	}
	return nil
}

// MemoryOnly is a NUMA node without PUs (CXL memory, HBM in flat mode) with its nearest nodes.
type MemoryOnly struct {
	Node     int   `json:"node"`
	Bytes    int64 `json:"bytes"`
	Nearest  []int `json:"nearest,omitempty"`  // nearest nodes with PUs; empty if unknown
	Distance int   `json:"distance,omitempty"` // distance from these to the node; 10 is local
}
