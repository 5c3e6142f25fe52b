package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"sandwich/topotree"
)

// Text draws the tree for a terminal. Nodes that hold the same PUs share a line, siblings of one
// shape are drawn once with the PUs of each, and what transforms removed is named.
func Text(w io.Writer, t *topotree.Tree) error {
	b := bufio.NewWriter(w)
	p := textPrinter{w: b, kept: t.CPUs(), full: t.Full()}
	root, names := chain(p.full.Root())
	fmt.Fprintf(b, "%s%s\n", strings.Join(append([]string{"machine"}, names...), " · "),
		p.pus([]*topotree.Node{p.full.Root()}))
	p.children(root, "")
	return b.Flush()
}

type textPrinter struct {
	w    io.Writer
	kept topotree.CPUSet
	full *topotree.Tree
}

// chain follows single children and returns the deepest node with the names passed on the way.
func chain(n *topotree.Node) (*topotree.Node, []string) {
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
		deepest, names := chain(r.nodes[0])
		name := strings.Join(names, " · ")
		if len(r.nodes) > 1 {
			name = fmt.Sprintf("%d × %s", len(r.nodes), plainName(r.nodes[0]))
		} else if name == "" {
			name = "PU"
		}
		fmt.Fprintf(p.w, "%s%s%s%s\n", indent, branch, name, p.pus(r.nodes))
		if deepest.Kind != topotree.KindPU {
			p.children(deepest, indent+next)
		}
	}
}

// plainName joins the names of a chain without the numbers that differ between siblings.
func plainName(n *topotree.Node) string {
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
func (p textPrinter) alike(a, b *topotree.Node) bool {
	return a.SameShape(b) && a.CPUs.Minus(p.kept).Count() == b.CPUs.Minus(p.kept).Count()
}

// pus lists the PUs of nodes in what fits on a line, and says how many are off.
func (p textPrinter) pus(nodes []*topotree.Node) string {
	const most, wide = 6, 60
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
		case i == most || len(on)+len(text) > wide && i > 0:
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
