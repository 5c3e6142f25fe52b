package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// printTree draws a tree with one line for each run of equal siblings, so that 192 PUs stay readable:
//
//	machine  cpus 0-191
//	└─ 2 x package  cpus 0-95 | 96-191
//	   └─ 4 x l3 (32 MiB)  cpus 0-23 | 24-47 | 48-71 | 72-95
//	      └─ 24 x core  cpus 0 | 1 | 2 | ... | 23
//
// Below a run, the children shown are those of its first node.
func printTree(w io.Writer, t *topotree.Tree) {
	d := treeDrawer{w: w, shapes: map[*topotree.Node]string{}, colored: len(t.Palette()) > 1}
	d.draw([]*topotree.Node{t.Root()}, "", "")
}

type treeDrawer struct {
	w       io.Writer
	shapes  map[*topotree.Node]string
	colored bool
}

// draw writes a run of equal nodes and what is below the first of them. A core with one PU, or an L2 of one core, is
// drawn as one line with what it holds.
func (d *treeDrawer) draw(run []*topotree.Node, head, indent string) {
	first := run[0]
	text := head + d.label(run)
	below := first
	for len(below.Children) == 1 && below.Kind != topotree.KindMachine {
		below = below.Children[0]
		if !below.Virtual && below.Kind != topotree.KindPU {
			text += " > " + nodeName(below)
		}
	}
	if len(below.Children) > 1 && below.Children[0].Kind == topotree.KindPU {
		text += fmt.Sprintf(" of %d PUs", len(below.Children))
		below = nil
	}
	fmt.Fprintln(d.w, text+"  cpus "+cpuList(run, textWidth-len([]rune(text))-7))
	if below == nil {
		return
	}
	runs := d.fold(below.Children)
	for i, r := range runs {
		branch, deeper := "├─ ", "│  "
		if i == len(runs)-1 {
			branch, deeper = "└─ ", "   "
		}
		d.draw(r, indent+branch, indent+deeper)
	}
}

// fold parts siblings into runs of equal shape.
func (d *treeDrawer) fold(nodes []*topotree.Node) (runs [][]*topotree.Node) {
	for i, n := range nodes {
		if i > 0 && d.shape(n) == d.shape(nodes[i-1]) {
			runs[len(runs)-1] = append(runs[len(runs)-1], n)
			continue
		}
		runs = append(runs, []*topotree.Node{n})
	}
	return runs
}

// shape is equal for subtrees that differ in numbers only. Memory sizes of nodes differ by a little on every machine
// and do not count.
func (d *treeDrawer) shape(n *topotree.Node) string {
	if s, ok := d.shapes[n]; ok {
		return s
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s/%v", n.Kind, n.Color, n.Virtual)
	if n.Kind != topotree.KindNUMA {
		fmt.Fprintf(&b, "/%d", n.Bytes)
	}
	for _, c := range n.Children {
		b.WriteString("(" + d.shape(c) + ")")
	}
	d.shapes[n] = b.String()
	return d.shapes[n]
}

func (d *treeDrawer) label(run []*topotree.Node) string {
	text := nodeName(run[0])
	switch {
	case len(run) > 1:
		text = fmt.Sprintf("%d x %s", len(run), text)
	case run[0].ID >= 0 && run[0].Kind != topotree.KindMachine:
		name, size, _ := strings.Cut(text, " (")
		text = name + " " + strconv.Itoa(run[0].ID)
		if size != "" {
			text += " (" + size
		}
	}
	if d.colored {
		text += " [color " + run[0].Color.String() + "]"
	}
	return text
}

// nodeName is the kind with its size, or with the stride of the group that made it.
func nodeName(n *topotree.Node) string {
	switch {
	case n.Kind == topotree.KindGroup && n.Stride > 0:
		return fmt.Sprintf("group (stride %d)", n.Stride)
	case n.Bytes > 0:
		return fmt.Sprintf("%s (%s)", n.Kind, formatSize(n.Bytes))
	}
	return n.Kind.String()
}

// cpuList joins the CPU sets of a run and leaves out the middle where the line would get longer than room.
func cpuList(run []*topotree.Node, room int) string {
	sets := make([]string, len(run))
	for i, n := range run {
		sets[i] = shortSet(n.CPUs)
	}
	all := strings.Join(sets, " | ")
	if len(all) <= room || len(run) < 4 {
		return all
	}
	last := " | ... | " + sets[len(sets)-1]
	shown := sets[0]
	for _, s := range sets[1 : len(sets)-1] {
		if len(shown)+len(s)+3+len(last) > room {
			break
		}
		shown += " | " + s
	}
	return shown + last
}

// shortSet writes a CPU set, a long one as its beginning and size.
func shortSet(s topotree.CPUSet) string {
	const most = 40
	text := s.String()
	if len(text) <= most {
		return text
	}
	cut := strings.LastIndexByte(text[:most-12], ',')
	if cut < 0 {
		return text
	}
	return fmt.Sprintf("%s,... (%d PUs)", text[:cut], s.Count())
}
