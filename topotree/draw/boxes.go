// Package draw draws trees, sections and measured matrices as SVG or as text for a terminal.
package draw

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sandwich/topotree"
)

// Options configures a drawing. The zero value draws the tree with its removed PUs.
type Options struct {
	Title   string            // heading; "" leaves only the transforms
	Ranks   int               // depth whose nodes are outlined as ranks; 0 outlines none
	Domains []topotree.CPUSet // measured clusters: PUs are filled by cluster instead of by color
	Marks   []Mark            // PUs are filled by the first of these that has them, instead of by color
	Teams   []topotree.CPUSet // ranks by their PUs: boxes that hold those of one are outlined, as Ranks are
}

// Mark labels the role of some PUs.
type Mark struct {
	Name string
	CPUs topotree.CPUSet
}

// box is one rectangle of a drawing: a node, or a chain of nodes with the same PUs.
type box struct {
	label    string
	kind     topotree.Kind // of the deepest node of the chain
	depths   [2]int
	color    topotree.Color
	pu       int // -1 unless the box is a PU
	removed  bool
	grouped  bool // a group made by a transform
	cpus     topotree.CPUSet
	children []*box

	x, y, w, h float64
}

// Dimensions of a drawing in SVG units.
const (
	puHeight  = 19.0
	padding   = 4.0
	header    = 15.0
	charWidth = 5.9 // of the 10-unit labels
	aspect    = 1.7 // of the whole, and of boxes where their children leave a choice
)

// boxes returns the rectangles of the full tree of t, with marks on PUs that t lacks.
func boxes(t *topotree.Tree) *box {
	full := t.Full()
	return newBox(full, full.Root(), 0, t.CPUs())
}

// newBox returns the box of a node. kept holds the PUs that no transform removed.
func newBox(t *topotree.Tree, n *topotree.Node, depth int, kept topotree.CPUSet) *box {
	b := &box{depths: [2]int{depth, depth}, pu: -1, cpus: n.CPUs, color: n.Color, removed: !n.CPUs.Intersects(kept)}
	var labels []string
	for {
		b.kind, b.depths[1] = n.Kind, depth
		b.grouped = b.grouped || n.Stride > 0
		if l := nodeLabel(n, t.MemoryOnly(n)); l != "" {
			labels = append(labels, l)
		}
		if len(n.Children) != 1 {
			break
		}
		n, depth = n.Children[0], depth+1
	}
	if n.Kind == topotree.KindPU {
		b.pu = n.ID
		return b
	}
	children := slices.Clone(n.Children)
	if len(labels) > 1 && slices.IndexFunc(children,
		func(c *topotree.Node) bool { return c.Kind != topotree.KindPU }) < 0 {
		labels = labels[len(labels)-1:] // a core is small: its cache is in the legend
	}
	b.label = strings.Join(labels, " · ")
	slices.SortFunc(children, func(a, c *topotree.Node) int { return a.CPUs.First() - c.CPUs.First() })
	for _, c := range children {
		b.children = append(b.children, newBox(t, c, depth+1, kept))
	}
	return b
}

// nodeLabel returns the name of a node with its nearest memory without PUs, "" if it needs no name.
func nodeLabel(n *topotree.Node, near []topotree.MemoryOnly) string {
	size := ""
	if n.Bytes > 0 {
		size = " " + byteText(n.Bytes)
	}
	id := ""
	if n.ID >= 0 {
		id = fmt.Sprintf(" %d", n.ID)
	}
	switch {
	case n.Virtual || n.Kind == topotree.KindMachine:
		return ""
	case n.Kind == topotree.KindPackage:
		return "Package" + id
	case n.Kind == topotree.KindNUMA:
		return "NUMA" + id + size + nearLabel(near, n.ID >= 0)
	case n.Kind.IsCache():
		return strings.ToUpper(n.Kind.String()) + size
	case n.Kind == topotree.KindGroup && n.Stride > 1:
		return fmt.Sprintf("group, stride %d", n.Stride)
	case n.Kind == topotree.KindGroup:
		return "group"
	case n.Kind == topotree.KindCore:
		return "core" + id
	case n.Kind == topotree.KindPU:
		return ""
	}
	return n.Kind.String() + id
}

// nearLabel names the memory without PUs that is nearest to a NUMA node.
func nearLabel(near []topotree.MemoryOnly, numbered bool) string {
	label := ""
	for _, o := range near {
		label += " + memory only"
		if numbered {
			label += fmt.Sprintf(" NUMA %d", o.Node)
		}
		label += fmt.Sprintf(" %s, distance %d", byteText(o.Bytes), o.Distance)
	}
	return label
}

// byteText formats a size in the largest unit in which it is whole, or with one decimal.
func byteText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if v == math.Trunc(v) || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[u])
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}

// layout sets the sizes of all boxes and the positions of children relative to their parents. All
// PUs have the same width, so equal boxes have equal sizes.
func (b *box) layout(puWide float64) {
	if b.pu >= 0 {
		b.w, b.h = puWide, puHeight
		return
	}
	for _, c := range b.children {
		c.layout(puWide)
	}
	best := math.Inf(1)
	var columns int
	for n := 1; n <= len(b.children); n++ {
		w, h := b.arrange(n)
		score := math.Abs(math.Log(w / h / aspect))
		if len(b.children)%n != 0 {
			score += 1 // full rows read better, unless they would be far too long
		}
		if score < best {
			best, columns = score, n
		}
	}
	b.w, b.h = b.arrange(columns)
}

// arrange places the children in rows of n and returns the total size.
func (b *box) arrange(n int) (w, h float64) {
	y := padding
	if b.label != "" {
		y = header
		w = charWidth*float64(len([]rune(b.label))) + 2*padding
	}
	for row := range slices.Chunk(b.children, n) {
		x, tall := padding, 0.0
		for _, c := range row {
			c.x, c.y = x, y
			x += c.w + padding
			tall = math.Max(tall, c.h)
		}
		w = math.Max(w, x)
		y += tall + padding
	}
	return w, y
}
