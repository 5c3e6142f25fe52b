package chart

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"

	"sandwich/tuner/measure"
)

// Ceiling is one compute ceiling with its memory ceiling.
type Ceiling struct {
	Name      string
	Peak      float64 // FLOP/s
	Bandwidth float64 // B/s
}

// Sizes of the roofline chart, in pixels.
const (
	ceilingWidth, ceilingHeight = 860.0, 520.0
	ceilingLeft, ceilingRight   = 64.0, 190.0
	ceilingTop, ceilingBottom   = 46.0, 48.0
)

// trail is one op over M.
type trail struct {
	name  string
	color string
	rows  []measure.RooflineRow // by intensity
}

// Roofline writes a chart of the ops and their ceilings: FLOP/s over FLOP per byte, both
// logarithmic. A filled mark is measured, a hollow one predicted. Ops that read no memory are
// omitted.
func Roofline(w io.Writer, rows []measure.RooflineRow, ceilings []Ceiling) error {
	p := picture{w: bufio.NewWriter(w)}
	trails := trailsOf(rows)
	a := ceilingAxes(trails, ceilings)
	title := "no op reads memory"
	if len(rows) > 0 {
		title = rows[0].Model + " on " + rows[0].CPU
	}
	p.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="11">`,
		ceilingWidth, ceilingHeight, ceilingWidth, ceilingHeight)
	p.f(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	p.f(`<text x="%.0f" y="20" font-size="13" font-weight="bold">Roofline of the ops of %s</text>`, ceilingLeft,
		escapeXML(title))
	p.f(`<text x="%.0f" y="36" fill="#555555">full: measured, hollow: predicted; the number is M</text>`, ceilingLeft)
	p.decades(&a)
	for i, r := range ceilings {
		p.ceilingLine(&a, r, i)
	}
	y := ceilingTop + 14
	for i := range trails {
		p.trail(&a, &trails[i])
		x := ceilingWidth - ceilingRight + 14
		p.f(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/><text x="%.1f" y="%.1f">%s</text>`, x, y-4, trails[i].color,
			x+10, y, escapeXML(trails[i].name))
		y += 17
	}
	p.f("</svg>")
	return p.w.Flush()
}

// trailsOf groups rows by op and instruction set.
func trailsOf(rows []measure.RooflineRow) (out []trail) {
	several := slices.ContainsFunc(rows, func(r measure.RooflineRow) bool { return r.ISA != rows[0].ISA })
	for _, r := range rows {
		if !(r.Intensity > 0) || !(r.GFLOPS() > 0) || math.IsInf(r.GFLOPS(), 0) {
			continue
		}
		name := r.Op
		if several {
			name += ", " + r.ISA
		}
		k := slices.IndexFunc(out, func(t trail) bool { return t.name == name })
		if k < 0 {
			k = len(out)
			out = append(out, trail{name: name, color: peerColors[k%len(peerColors)]})
		}
		out[k].rows = append(out[k].rows, r)
	}
	return out
}

// logAxes map two logarithms to the chart.
type logAxes struct{ loX, hiX, loY, hiY float64 }

func (a *logAxes) x(v float64) float64 {
	return ceilingLeft + (ceilingWidth-ceilingLeft-ceilingRight)*(math.Log10(v)-a.loX)/(a.hiX-a.loX)
}

func (a *logAxes) y(v float64) float64 {
	return ceilingTop + (ceilingHeight-ceilingTop-ceilingBottom)*(1-(math.Log10(v)-a.loY)/(a.hiY-a.loY))
}

// ceilingAxes returns axes that contain all marks and ridges, in whole decades.
func ceilingAxes(trails []trail, ceilings []Ceiling) logAxes {
	a := logAxes{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	hold := func(x, y float64) {
		a.loX, a.hiX = min(a.loX, math.Log10(x)), max(a.hiX, math.Log10(x))
		a.loY, a.hiY = min(a.loY, math.Log10(y)), max(a.hiY, math.Log10(y))
	}
	for _, t := range trails {
		for i := range t.rows {
			r := &t.rows[i]
			hold(r.Intensity, r.GFLOPS())
			if r.Predicted > 0 {
				hold(r.Intensity, r.FLOP/r.Predicted/1e9)
			}
		}
	}
	for _, r := range ceilings {
		if r.Peak > 0 && r.Bandwidth > 0 {
			hold(r.Peak/r.Bandwidth, r.Peak/1e9)
		}
	}
	if a.loX > a.hiX {
		a = logAxes{0, 1, 0, 1}
	}
	const margin = 0.08 // of a decade, so that no mark lies on the frame
	a.loX, a.loY = math.Floor(a.loX-margin), math.Floor(a.loY-margin)
	a.hiX, a.hiY = math.Ceil(a.hiX+margin), math.Ceil(a.hiY+margin)
	return a
}

// decades draws the frame and a line for each power of ten.
func (p *picture) decades(a *logAxes) {
	left, right, top, bottom := ceilingLeft, ceilingWidth-ceilingRight, ceilingTop, ceilingHeight-ceilingBottom
	p.f(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#fcfcfc" stroke="#999999"/>`, left, top, right-left,
		bottom-top)
	for e := a.loX; e <= a.hiX; e++ {
		x := a.x(math.Pow(10, e))
		p.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e2e2e2"/><text x="%.1f" y="%.1f" text-anchor="middle">%g</text>`,
			x, top, x, bottom, x, bottom+15, math.Pow(10, e))
	}
	for e := a.loY; e <= a.hiY; e++ {
		y := a.y(math.Pow(10, e))
		p.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e2e2e2"/><text x="%.1f" y="%.1f" text-anchor="end">%g</text>`,
			left, y, right, y, left-6, y+4, math.Pow(10, e))
	}
	p.f(`<text x="%.1f" y="%.1f" text-anchor="middle">FLOP per byte of memory</text>`, (left+right)/2, bottom+34)
	p.f(`<text x="16" y="%.1f" text-anchor="middle" transform="rotate(-90 16 %.1f)">GFLOP/s</text>`, (top+bottom)/2,
		(top+bottom)/2)
}

// ceilingLine draws the memory ceiling up to the ridge and the peak after it, within the frame.
func (p *picture) ceilingLine(a *logAxes, r Ceiling, at int) {
	if !(r.Peak > 0 && r.Bandwidth > 0) {
		return
	}
	ridge, first, last := r.Peak/r.Bandwidth, math.Pow(10, a.loX), math.Pow(10, a.hiX)
	low := math.Max(first, math.Pow(10, a.loY)*1e9/r.Bandwidth) // where the memory ceiling enters the frame
	p.f(`<polyline points="%.1f,%.1f %.1f,%.1f %.1f,%.1f" fill="none" stroke="#333333" stroke-width="1.3"/>`, a.x(low),
		a.y(low*r.Bandwidth/1e9), a.x(ridge), a.y(r.Peak/1e9), a.x(last), a.y(r.Peak/1e9))
	dy := -5.0
	if at%2 == 1 {
		dy = 13 // so that the labels of two ceilings of similar height do not overlap
	}
	p.f(`<text x="%.1f" y="%.1f" text-anchor="end" fill="#333333">%s %.4g</text>`, a.x(last)-4, a.y(r.Peak/1e9)+dy,
		escapeXML(r.Name), r.Peak/1e9)
}

// trail draws one op.
func (p *picture) trail(a *logAxes, t *trail) {
	for i := range t.rows {
		r := &t.rows[i]
		x, y := a.x(r.Intensity), a.y(r.GFLOPS())
		if r.Seconds > 0 {
			hollow := a.y(r.FLOP / r.Predicted / 1e9)
			p.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x, y, x, hollow, t.color)
			p.f(`<circle cx="%.1f" cy="%.1f" r="3.4" fill="#ffffff" stroke="%s"/>`, x, hollow, t.color)
		}
		fill := t.color
		if r.Seconds == 0 {
			fill = "#ffffff"
		}
		text := fmt.Sprintf("%s, M=%d: %.4g GFLOP/s, %s", t.name, r.M, r.GFLOPS(), r.Regime)
		p.f(`<circle cx="%.1f" cy="%.1f" r="3.4" fill="%s" stroke="%s"><title>%s</title></circle>`, x, y, fill, t.color,
			escapeXML(text))
		if i == 0 || r.M != t.rows[i-1].M {
			p.f(`<text x="%.1f" y="%.1f" font-size="8" fill="%s">%d</text>`, x+5, y+9, t.color, r.M)
		}
	}
}
