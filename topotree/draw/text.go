package draw

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"sandwich/topotree"
)

// Text draws the tree for a terminal. Nodes with the same PUs share a line, equal siblings are
// drawn once with the PUs of each, and removed PUs are listed.
func Text(w io.Writer, t *topotree.Tree) error {
	b := bufio.NewWriter(w)
	p := textPrinter{w: b, kept: t.CPUs(), full: t.Full()}
	root := p.full.Root()
	name := "machine"
	if names := p.names(root, true); names != "" {
		name += " · " + names
	}
	fmt.Fprintf(b, "%s%s\n", name, p.pus([]*topotree.Node{root}))
	p.children(deepest(root), "")
	return b.Flush()
}

type textPrinter struct {
	w    io.Writer
	kept topotree.CPUSet
	full *topotree.Tree
}

// deepest returns the last node of a chain of single children.
func deepest(n *topotree.Node) *topotree.Node {
	for len(n.Children) == 1 {
		n = n.Children[0]
	}
	return n
}

// names returns the names of a node and of its chain of single children. It omits numbers that
// differ between siblings unless numbered is set.
func (p textPrinter) names(n *topotree.Node, numbered bool) string {
	var names []string
	for {
		c := *n
		if !numbered {
			c.ID = -1
		}
		if l := nodeLabel(&c, p.full.MemoryOnly(n)); l != "" {
			names = append(names, l)
		}
		if len(n.Children) != 1 {
			break
		}
		n = n.Children[0]
	}
	return strings.Join(names, " · ")
}

// children prints the sequences of equal children of a node.
func (p textPrinter) children(n *topotree.Node, indent string) {
	type run struct{ nodes []*topotree.Node }
	var runs []run
	for _, c := range n.Children {
		if last := len(runs) - 1; last >= 0 && p.alike(runs[last].nodes[0], c) {
			runs[last].nodes = append(runs[last].nodes, c)
			continue
		}
		runs = append(runs, run{[]*topotree.Node{c}})
	}
	for i, r := range runs {
		branch, next := "├─ ", "│  "
		if i == len(runs)-1 {
			branch, next = "└─ ", "   "
		}
		name := cmp.Or(p.names(r.nodes[0], len(r.nodes) == 1), "PU")
		if len(r.nodes) > 1 {
			name = fmt.Sprintf("%d × %s", len(r.nodes), name)
		}
		fmt.Fprintf(p.w, "%s%s%s%s\n", indent, branch, name, p.pus(r.nodes))
		if last := deepest(r.nodes[0]); last.Kind != topotree.KindPU {
			p.children(last, indent+next)
		}
	}
}

// alike reports whether two siblings look the same with and without removals.
func (p textPrinter) alike(a, b *topotree.Node) bool {
	return a.Digest() == b.Digest() && a.CPUs.Minus(p.kept).Count() == b.CPUs.Minus(p.kept).Count() &&
		p.memoryText(a) == p.memoryText(b)
}

// memoryText describes the memory without PUs inside a node.
func (p textPrinter) memoryText(n *topotree.Node) string {
	text := nearLabel(p.full.MemoryOnly(n), false)
	for _, c := range n.Children {
		text += p.memoryText(c)
	}
	return text
}

// pus lists the PUs of nodes on one line, with the number of removed ones.
func (p textPrinter) pus(nodes []*topotree.Node) string {
	const limit, wide = 6, 60
	on, active, removed := "", 0, 0
	for i, n := range nodes {
		kept := n.CPUs.Intersect(p.kept)
		active += kept.Count()
		removed += n.CPUs.Count() - kept.Count()
		text := "none"
		if !kept.IsEmpty() {
			text = kept.String()
		}
		switch {
		case i > 0 && strings.HasSuffix(on, "..."):
		case i == limit || len(on)+len(text) > wide && i > 0:
			on += " | ..."
		case len(text) > wide:
			on = text[:strings.LastIndexByte(text[:wide], ',')+1] + "..."
		case i > 0:
			on += " | " + text
		default:
			on = text
		}
	}
	if active == 0 {
		return fmt.Sprintf("  off (%d removed)", removed)
	}
	var notes []string
	if len(nodes) == 1 && active+removed > 1 {
		notes = append(notes, fmt.Sprintf("%d PUs", active))
	}
	if removed > 0 {
		notes = append(notes, fmt.Sprintf("%d removed", removed))
	}
	line := "  " + on
	if len(notes) > 0 {
		line += "  (" + strings.Join(notes, ", ") + ")"
	}
	return line
}
