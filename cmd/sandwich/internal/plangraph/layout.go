package plangraph

import (
	"strings"

	"sandwich/runtime/offload/execgraph"
)

// Sizes of the picture. The cores are on the left, the device on the right, the caches between
// them.
const (
	outer       = 210.0 // space for edges that pass over kernels
	boxWidth    = 210.0
	boxHeight   = 56.0
	middle      = 300.0
	cacheWidth  = 120.0
	rowDistance = 104.0
	headHeight  = 64.0
	footHeight  = 34.0
)

// point is a position in the picture.
type point struct{ x, y float64 }

// box is a kernel, a cache or the sampling of tokens.
type box struct {
	point             // upper left corner
	width, height     float64
	row, side         int  // side: 0 cores, 1 device, -1 between them
	order             int  // of a cache among the caches
	other             bool // a variant that is not used
	lines             []string
	fill, description string
}

func (b *box) left() point   { return point{b.x, b.y + b.height/2} }
func (b *box) right() point  { return point{b.x + b.width, b.y + b.height/2} }
func (b *box) top() point    { return point{b.x + b.width/2, b.y} }
func (b *box) bottom() point { return point{b.x + b.width/2, b.y + b.height} }

// panel is the picture of one graph.
type panel struct {
	graph         *execgraph.Graph
	device        string // "" if there is none
	boxes         []*box
	ends          map[string]*box // by the name of an edge's end
	width, height float64
}

// fills of the targets and of the rest.
var fills = [...]string{"#9ecae1", "#fdae6b"}

const (
	cacheFill    = "#f4f4f0"
	samplingFill = "#ffffff"
	sampling     = "sampling"
	cachePrefix  = "KV cache of "
)

// newPanel lays a graph out below y.
func newPanel(g *execgraph.Graph, y float64) *panel {
	p := &panel{graph: g, ends: map[string]*box{}}
	for i := range g.Kernels {
		for _, v := range g.Kernels[i].Variants {
			if v.Target != execgraph.Cores {
				p.device = v.Target
			}
		}
	}
	p.width = outer + boxWidth + middle
	if p.device != "" {
		p.width += boxWidth + outer
	}
	for i := range g.Kernels {
		p.kernel(i, y)
	}
	p.rest(y)
	p.height = headHeight + float64(len(g.Kernels)+1)*rowDistance
	return p
}

// at returns the upper left corner of a kernel's box.
func at(side, row int, y float64) point {
	return point{outer + float64(side)*(boxWidth+middle), y + headHeight + float64(row)*rowDistance}
}

// kernel adds the boxes of a kernel's variants.
func (p *panel) kernel(row int, y float64) {
	k := &p.graph.Kernels[row]
	for i := range k.Variants {
		v := &k.Variants[i]
		side := 0
		if v.Target != execgraph.Cores {
			side = 1
		}
		b := &box{point: at(side, row, y), width: boxWidth, height: boxHeight, row: row, side: side,
			other: v.Target != k.Bound, fill: fills[side], description: strings.Join(k.Ops, " ")}
		name := k.Name
		switch {
		case k.Count > 1:
			name += ", layers " + k.Layers
		case k.Layers != "":
			name += ", layer " + k.Layers
		}
		b.lines = []string{clip(name), seconds(v, 1) + ", " + bytes(v.Bytes, v.Unknown), "rows: " + v.Rows}
		if !b.other {
			p.ends[p.graph.Label(k)] = b
		}
		p.boxes = append(p.boxes, b)
	}
}

// rest adds the caches and the sampling of tokens where edges lead to them.
func (p *panel) rest(y float64) {
	row := 0 // of the first cache
	for i := range p.graph.Kernels {
		if p.graph.Kernels[i].Name == "attention" {
			row = i
			break
		}
	}
	caches := 0
	for _, e := range p.graph.Edges {
		for _, name := range []string{e.From, e.To} {
			if p.ends[name] != nil {
				continue
			}
			b := &box{width: cacheWidth, height: boxHeight - 12, row: len(p.graph.Kernels), side: -1}
			b.lines = []string{name}
			switch target, isCache := strings.CutPrefix(name, cachePrefix); {
			case isCache:
				b.fill, b.lines = cacheFill, []string{"KV cache", clip(target)}
				b.point = at(0, row+caches, y)
				b.x += boxWidth + (middle-cacheWidth)/2
				b.y -= rowDistance / 2
				b.row, b.order = row+caches, caches
				caches++
			case name == sampling:
				b.fill, b.side = samplingFill, 0
				b.point = at(0, len(p.graph.Kernels), y)
				b.x += (boxWidth - cacheWidth) / 2
			}
			p.ends[name] = b
			p.boxes = append(p.boxes, b)
		}
	}
}

// clip shortens a text to the width of a box.
func clip(text string) string {
	const limit = 34
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}
