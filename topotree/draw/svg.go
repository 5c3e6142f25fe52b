package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"sandwich/topotree"
)

// fills holds the fill colors of basic colors and measured clusters. Adjacent ones differ in print
// and for color-blind readers.
var fills = []string{"#9ecae1", "#fdae6b", "#a1d99b", "#bcbddc", "#fdd0a2", "#80cdc1", "#f4a9c4", "#d9d27a"}

// kindFills holds the background colors of boxes by kind, from the machine inwards.
var kindFills = map[topotree.Kind]string{
	topotree.KindMachine: "#ffffff", topotree.KindPackage: "#f4f4f0", topotree.KindDie: "#eceff1",
	topotree.KindNUMA: "#e8eef5", topotree.KindL4: "#f3ecdf", topotree.KindL3: "#f7f3e8",
	topotree.KindGroup: "#fffdf5", topotree.KindCluster: "#fffdf5", topotree.KindL2: "#fbfbf8",
	topotree.KindCore: "#f7f7f7",
}

// SVG draws the tree as nested boxes like lstopo. Removed PUs are gray, groups have dashed outlines
// and ranks thick ones, and PUs are filled by color or measured cluster.
func SVG(w io.Writer, t *topotree.Tree, o Options) error {
	root := boxes(t)
	root.layout(charWidth*float64(len(fmt.Sprint(t.Base().CPUs().Last()))) + 9)
	d := drawing{w: bufio.NewWriter(w), tree: t, o: o, teams: topotree.UnionOf(o.Teams)}
	titles, legend := d.titles(), d.legend()
	width := root.w
	for _, line := range append(titles, legendWidthText(legend)) {
		width = max(width, float64(len([]rune(line)))*charWidth*1.25)
	}
	width += 2 * padding
	top := float64(len(titles))*18 + padding
	height := top + root.h + 34
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="10">`+"\n", width, height, width, height)
	d.printf(`<rect width="100%%" height="100%%" fill="#ffffff"/>` + "\n")
	for i, line := range titles {
		weight := ""
		if i == 0 {
			weight = ` font-weight="bold"`
		}
		d.printf(`<text x="%.0f" y="%d" font-size="12"%s>%s</text>`+"\n", padding, 16+18*i, weight, escape(line))
	}
	root.x, root.y = padding, top
	d.box(root, 0, 0)
	d.drawLegend(legend, top+root.h+20)
	d.printf("</svg>\n")
	if d.err != nil {
		return d.err
	}
	return d.w.Flush()
}

type drawing struct {
	w    *bufio.Writer
	tree *topotree.Tree
	o    Options
	// PUs of all ranks
	teams topotree.CPUSet
	err   error
}

func (d *drawing) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(d.w, format, args...); err != nil && d.err == nil {
		d.err = err
	}
}

func escape(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		return ""
	}
	return b.String()
}

// titles returns the heading and the subtitle.
func (d *drawing) titles() []string {
	var out []string
	if d.o.Title != "" {
		out = append(out, d.o.Title)
	}
	full := d.tree.Full().PUs()
	line := fmt.Sprintf("%d PUs", full)
	if n := d.tree.PUs(); n != full {
		line = fmt.Sprintf("%d of %d PUs active", n, full)
	}
	for _, x := range d.tree.Transforms() {
		line += ", " + x.String()
	}
	if d.o.Ranks > 0 {
		if level := d.tree.Level(d.o.Ranks); len(level) > 0 {
			line += fmt.Sprintf("; %d ranks", len(level))
		}
	}
	return append(out, line)
}

// box draws a box and its contents, parents first.
func (d *drawing) box(b *box, dx, dy float64) {
	x, y := b.x+dx, b.y+dy
	rank := d.o.Ranks > 0 && b.depths[0] <= d.o.Ranks && d.o.Ranks <= b.depths[1] && !b.removed || d.team(b) >= 0
	stroke, line, dash := "#9a9a9a", 0.8, ""
	switch {
	case rank:
		stroke, line = "#c0392b", 2.2
	case b.grouped:
		stroke, line, dash = "#5b7f2b", 1.2, ` stroke-dasharray="4 2"`
	}
	fill := kindFills[b.kind]
	if b.pu >= 0 {
		fill = d.puFill(b)
	}
	d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s" stroke="%s" stroke-width="%.1f"%s/>`+
		"\n",
		x, y, b.w, b.h, fill, stroke, line, dash)
	if b.pu >= 0 {
		ink := "#222222"
		if b.removed {
			ink = "#b5b5b5"
		}
		d.printf(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s">%d%s</text>`+"\n", x+b.w/2,
			y+b.h/2+3.5, ink, b.pu, d.tip(b.pu))
		return
	}
	if b.label != "" {
		ink := "#444444"
		if b.removed {
			ink = "#b5b5b5"
		}
		d.printf(`<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", x+padding, y+11, ink, escape(b.label))
	}
	for _, c := range b.children {
		d.box(c, x, y)
	}
}

// team returns the index of the rank that contains all PUs of a box, -1 if there is none.
func (d *drawing) team(b *box) int {
	own := b.cpus.Intersect(d.teams)
	return slices.IndexFunc(d.o.Teams, func(t topotree.CPUSet) bool { return !t.IsEmpty() && t.Equal(own) })
}

// tip returns the tooltip of a PU.
func (d *drawing) tip(pu int) string {
	text := ""
	for i, t := range d.o.Teams {
		if t.Contains(pu) {
			text = fmt.Sprintf("rank %d", i)
		}
	}
	for _, m := range d.o.Marks {
		if m.CPUs.Contains(pu) {
			text = strings.TrimPrefix(text+", "+m.Name, ", ")
			break
		}
	}
	if text == "" {
		return ""
	}
	return "<title>" + escape(text) + "</title>"
}

func (d *drawing) puFill(b *box) string {
	if b.removed {
		return "#ececec"
	}
	for i, m := range d.o.Marks {
		if m.CPUs.Contains(b.pu) {
			return fills[i%len(fills)]
		}
	}
	if len(d.o.Marks) > 0 {
		return "#ffffff"
	}
	for i, s := range d.o.Domains {
		if s.Contains(b.pu) {
			return fills[i%len(fills)]
		}
	}
	if basics := b.color.Basics(); len(basics) > 0 && len(d.o.Domains) == 0 {
		return fills[basics[0]%len(fills)]
	}
	return "#ffffff"
}

// legendEntry is a swatch of the legend with its text.
type legendEntry struct{ fill, stroke, dash, text string }

func (d *drawing) legend() []legendEntry {
	var out []legendEntry
	switch palette := d.tree.Palette(); {
	case len(d.o.Marks) > 0:
		rest := d.tree.CPUs()
		for i, m := range d.o.Marks {
			out = append(out, legendEntry{fills[i%len(fills)], "#9a9a9a", "", m.Name})
			rest = rest.Minus(m.CPUs)
		}
		if !rest.IsEmpty() {
			out = append(out, legendEntry{"#ffffff", "#9a9a9a", "", "idle"})
		}
	case len(d.o.Domains) > 0:
		out = append(out, legendEntry{fills[0], "#9a9a9a", "", fmt.Sprintf("filled by measured cluster (%d)",
			len(d.o.Domains))})
	case len(palette) <= len(fills):
		for i, info := range palette {
			name := info.Name
			if len(palette) == 1 {
				name = "PU"
			}
			out = append(out, legendEntry{fills[i], "#9a9a9a", "", name})
		}
	default:
		out = append(out, legendEntry{fills[0], "#9a9a9a", "", fmt.Sprintf("filled by color (%d)", len(palette))})
	}
	if text := d.coreCache(); text != "" {
		out = append(out, legendEntry{"#f7f7f7", "#9a9a9a", "", text})
	}
	if d.tree.PUs() < d.tree.Full().PUs() {
		out = append(out, legendEntry{"#ececec", "#9a9a9a", "", "removed"})
	}
	for _, x := range d.tree.Transforms() {
		if x.Op == topotree.OpGroup {
			out = append(out, legendEntry{"#fffdf5", "#5b7f2b", ` stroke-dasharray="4 2"`, "group"})
			break
		}
	}
	if d.o.Ranks > 0 || len(d.o.Teams) > 0 {
		out = append(out, legendEntry{"#ffffff", "#c0392b", "", "rank"})
	}
	return out
}

// coreCache describes the private cache of each core, which the boxes omit.
func (d *drawing) coreCache() string {
	level := d.tree.LevelOf(topotree.KindL2)
	if level < 0 {
		return ""
	}
	size := int64(0)
	for _, n := range d.tree.Level(level) {
		if n.Virtual {
			continue
		}
		last := deepest(n).Kind
		if last != topotree.KindPU && last != topotree.KindCore || size != 0 && n.Bytes != size {
			return "" // shared, or of different sizes: the boxes show it
		}
		size = n.Bytes
	}
	if size == 0 {
		return ""
	}
	return "L2 " + byteText(size) + " per core"
}

func legendWidthText(entries []legendEntry) string {
	line := ""
	for _, e := range entries {
		line += "______" + e.text
	}
	return line
}

func (d *drawing) drawLegend(entries []legendEntry, y float64) {
	x := padding
	for _, e := range entries {
		d.printf(`<rect x="%.1f" y="%.1f" width="16" height="11" fill="%s" stroke="%s"%s/>`+"\n", x, y-9, e.fill,
			e.stroke, e.dash)
		d.printf(`<text x="%.1f" y="%.1f">%s</text>`+"\n", x+21, y, escape(e.text))
		x += 34 + charWidth*1.15*float64(len([]rune(e.text)))
	}
}
