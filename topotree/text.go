package topotree

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteText draws the tree for a terminal. Nodes that hold the same PUs share a line, siblings of one shape are drawn
// once with the PUs of each, and what transforms removed is named.
func (t *Tree) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	p := textPrinter{w: b, kept: t.CPUs(), full: t.Full()}
	fmt.Fprintf(b, "machine%s\n", p.pus([]*Node{p.full.Root()}))
	root, _ := chain(p.full.Root())
	p.children(root, "")
	return b.Flush()
}

type textPrinter struct {
	w    io.Writer
	kept CPUSet
	full *Tree
}

// chain follows single children and returns the deepest node with the names passed on the way.
func chain(n *Node) (*Node, []string) {
	var names []string
	for {
		if l := nodeLabel(n); l != "" {
			names = append(names, l)
		}
		if len(n.Children) != 1 {
			return n, names
		}
		n = n.Children[0]
	}
}

// children prints the runs of alike children of a node.
func (p textPrinter) children(n *Node, indent string) {
	type run struct{ nodes []*Node }
	var runs []run
	for _, c := range n.Children {
		if last := len(runs) - 1; last >= 0 && p.alike(runs[last].nodes[0], c) {
			runs[last].nodes = append(runs[last].nodes, c)
			continue
		}
		runs = append(runs, run{[]*Node{c}})
	}
	for i, r := range runs {
		branch, next := "├─ ", "│  "
		if i == len(runs)-1 {
			branch, next = "└─ ", "   "
		}
		deepest, names := chain(r.nodes[0])
		name := strings.Join(names, " · ")
		if len(r.nodes) > 1 {
			name = fmt.Sprintf("%d × %s", len(r.nodes), plainName(r.nodes[0]))
		} else if name == "" {
			name = "PU"
		}
		fmt.Fprintf(p.w, "%s%s%s%s\n", indent, branch, name, p.pus(r.nodes))
		if deepest.Kind != KindPU {
			p.children(deepest, indent+next)
		}
	}
}

// plainName joins the names of a chain without the numbers that differ between siblings.
func plainName(n *Node) string {
	var names []string
	for {
		c := *n
		c.ID = -1
		if l := nodeLabel(&c); l != "" {
			names = append(names, l)
		}
		if len(n.Children) != 1 {
			break
		}
		n = n.Children[0]
	}
	if len(names) == 0 {
		return "PU"
	}
	return strings.Join(names, " · ")
}

// alike reports whether two siblings look the same before and after what was removed.
func (p textPrinter) alike(a, b *Node) bool {
	return a.digest == b.digest && a.CPUs.Minus(p.kept).Count() == b.CPUs.Minus(p.kept).Count()
}

// pus lists the PUs of nodes, with what is off.
func (p textPrinter) pus(nodes []*Node) string {
	const most = 6
	var on, off []string
	for i, n := range nodes {
		if i == most {
			on = append(on, "...")
			break
		}
		on = append(on, textOf(n.CPUs.Intersect(p.kept)))
	}
	removed := 0
	for _, n := range nodes {
		removed += n.CPUs.Minus(p.kept).Count()
	}
	line := "  " + strings.Join(on, " | ")
	if removed > 0 {
		off = append(off, fmt.Sprintf("%d removed", removed))
	}
	if len(nodes) == 1 && nodes[0].CPUs.Count() > 1 {
		off = append([]string{fmt.Sprintf("%d PUs", nodes[0].CPUs.Intersect(p.kept).Count())}, off...)
	}
	if len(off) > 0 {
		line += "  (" + strings.Join(off, ", ") + ")"
	}
	return line
}

func textOf(s CPUSet) string {
	if s.IsEmpty() {
		return "none"
	}
	return clip(s.String())
}
