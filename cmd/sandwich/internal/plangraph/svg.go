package plangraph

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"

	"sandwich/runtime/offload/execgraph"
)

// Colors of edges.
const (
	stays = "#808080"
	moved = "#c0392b"
)

// SVG draws graphs below each other. It draws no edge whose end it does not know.
func SVG(w io.Writer, heading string, graphs []*execgraph.Graph) error {
	const top = 30
	d := drawing{w: bufio.NewWriter(w)}
	var panels []*panel
	width, height := 0.0, float64(top)
	for _, g := range graphs {
		p := newPanel(g, height)
		panels = append(panels, p)
		width, height = max(width, p.width), height+p.height
	}
	height += footHeight
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" `+
		`font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="10">`, width, height, width, height)
	d.printf(`<defs>%s%s</defs>`, marker("stay", stays), marker("move", moved))
	d.printf(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	d.text(point{10, 20}, "start", 13, true, heading)
	at := float64(top)
	for _, p := range panels {
		d.panel(p, at)
		at += p.height
	}
	d.legend(height-footHeight/2, width)
	d.printf("</svg>")
	return d.w.Flush()
}

// marker returns the definition of an arrow head.
func marker(id, color string) string {
	return fmt.Sprintf(`<marker id="%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" `+
		`orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="%s"/></marker>`, id, color)
}

// drawing writes elements. Write errors are those of Flush.
type drawing struct{ w *bufio.Writer }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d.w, format+"\n", args...) }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder returns no error
	return b.String()
}

func (d *drawing) text(p point, anchor string, size int, bold bool, text string) {
	weight := ""
	if bold {
		weight = ` font-weight="bold"`
	}
	d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d"%s>%s</text>`, p.x, p.y, anchor, size, weight,
		escape(text))
}

// panel draws one graph: edges, then boxes and labels above them.
func (d *drawing) panel(p *panel, y float64) {
	d.text(point{10, y + 18}, "start", 12, true, title(p.graph))
	d.text(point{outer + boxWidth/2, y + 44}, "middle", 11, true, execgraph.Cores)
	if p.device != "" {
		d.text(point{outer + boxWidth + middle + boxWidth/2, y + 44}, "middle", 11, true, p.device)
	}
	var labels []label
	passing := [2]int{}
	for i := range p.graph.Edges {
		e := &p.graph.Edges[i]
		from, to := p.ends[e.From], p.ends[e.To]
		if from == nil || to == nil || from == to {
			continue
		}
		labels = append(labels, d.edge(e, from, to, &passing))
	}
	for _, b := range p.boxes {
		d.box(b)
	}
	for _, l := range labels {
		d.label(l)
	}
}

func (d *drawing) box(b *box) {
	fill, dash, ink := b.fill, "", "#222222"
	if b.other {
		fill, dash, ink = "#ffffff", ` stroke-dasharray="4 3"`, "#777777"
	}
	d.printf(`<g fill="%s"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4" fill="%s" stroke="#9a9a9a"%s/>`,
		ink, b.x, b.y, b.width, b.height, fill, dash)
	first := b.y + b.height/2 - 7*float64(len(b.lines)-1) + 3.5
	for i, line := range b.lines {
		d.text(point{b.x + b.width/2, first + 14*float64(i)}, "middle", 10, i == 0 && !b.other, line)
	}
	if b.description != "" {
		d.printf(`<title>%s</title>`, escape(b.description))
	}
	d.printf(`</g>`)
}

// label is the text of an edge.
type label struct {
	point
	anchor string
	color  string
	lines  []string
}

func (d *drawing) label(l label) {
	for i, line := range l.lines {
		y := l.y + 11*float64(i)
		width := 5.1 * float64(len([]rune(line)))
		left := l.x
		switch l.anchor {
		case "middle":
			left -= width / 2
		case "end":
			left -= width
		}
		d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="11" fill="#ffffff" fill-opacity="0.85"/>`, left, y-8.5, width)
		d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" font-size="9" fill="%s">%s</text>`, l.x, y, l.anchor, l.color,
			escape(line))
	}
}

// edge draws an edge and returns its label. passing counts the edges of each side that pass over
// kernels.
func (d *drawing) edge(e *execgraph.Edge, from, to *box, passing *[2]int) label {
	color, name, dash := stays, "stay", ""
	if e.Moves {
		color, name = moved, "move"
	}
	if e.Overlapped {
		dash = ` stroke-dasharray="5 3"`
	}
	l := label{color: "#444444", anchor: "start", lines: []string{clip(e.Carries), bytes(e.Bytes, false)}}
	if from.side < 0 || to.side < 0 {
		l.lines = []string{"K, V " + bytes(e.Bytes, false)}
	}
	if e.Moves {
		l.color = moved
	}
	var path string
	switch {
	case from.side != to.side:
		path = straight(from, to, &l)
	case to.row == from.row+1:
		a, b := from.bottom(), to.top()
		path = fmt.Sprintf("M%.1f %.1fL%.1f %.1f", a.x, a.y, b.x, b.y)
		l.point = point{a.x + 6, (a.y+b.y)/2 - 2}
	default:
		path = around(from, to, passing, &l)
	}
	d.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="1.4" marker-end="url(#%s)"%s/>`, path, color, name, dash)
	return l
}

// straight connects boxes of different sides by the sides that face each other. The label is next
// to the kernel, so that those of edges to one cache do not cover each other.
func straight(from, to *box, l *label) string {
	a, b := from.right(), to.left()
	if from.x > to.x {
		a, b = from.left(), to.right()
	}
	at := 0.5
	switch {
	case to.side < 0: // to a cache
		at = 0.42 + 0.2*float64(to.order)
	case from.side < 0:
		at = 0.7
	case from.side >= 0 && math.Abs(a.y-b.y) > rowDistance:
		at = 0.25
	}
	l.point, l.anchor = point{a.x + at*(b.x-a.x), a.y + at*(b.y-a.y) - 4}, "middle"
	return fmt.Sprintf("M%.1f %.1fL%.1f %.1f", a.x, a.y, b.x, b.y)
}

// around connects boxes of one side by a curve outside of it.
func around(from, to *box, passing *[2]int, l *label) string {
	side := from.side
	out := 30 + 40*float64(passing[side]%4)
	passing[side]++
	a, b := from.left(), to.left()
	x := min(a.x, b.x) - out
	l.anchor = "end"
	if side == 1 {
		a, b = from.right(), to.right()
		x, l.anchor = max(a.x, b.x)+out, "start"
	}
	// The ends of the curve are next to those of other edges of the box.
	a.y, b.y = a.y+8, b.y-8
	l.point = point{a.x + 0.75*(x-a.x), (a.y + b.y) / 2} // on the curve
	return fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", a.x, a.y, x, a.y, x, b.y, b.x, b.y)
}

func (d *drawing) legend(y, width float64) {
	x := 10.0
	add := func(text string, element string, args ...any) {
		d.printf(element, args...)
		d.text(point{x + 32, y + 3.5}, "start", 10, false, text)
		x += 46 + 6.2*float64(len(text))
	}
	const sample = `<path d="M%.1f %.1fh26" stroke="%s" stroke-width="1.4" marker-end="url(#%s)"%s/>`
	const square = `<rect x="%.1f" y="%.1f" width="24" height="12" rx="2" fill="%s" stroke="#9a9a9a"%s/>`
	add("variant that runs", square, x, y-6, fills[0], "")
	add("other variant", square, x, y-6, "#ffffff", ` stroke-dasharray="4 3"`)
	add("same memory", sample, x, y, stays, "stay", "")
	if add("moves to other memory", sample, x, y, moved, "move", ""); x+220 < width {
		add("moves when it is read", sample, x, y, moved, "move", ` stroke-dasharray="5 3"`)
	}
}
