package chart

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"sandwich/internal/message"
	"sandwich/tuner/measure/kernels"
)

// Sizes of the chart, in pixels: one plot for each shape and number of threads, in rows of
// plotColumns.
const (
	plotWidth, plotHeight = 300.0, 210.0
	plotLeft, plotBottom  = 40.0, 34.0
	plotTop, plotRight    = 22.0, 14.0
	plotColumns           = 4
)

// peerColors distinguish the series, also for color-blind readers (Okabe, Ito: Color universal
// design). The line of this module is thicker.
var (
	peerColors = []string{"#0072b2", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#7a7a7a", "#8c6d1f", "#000000"}
	ourColors  = []string{"#c0392b", "#e67e22", "#8e44ad", "#27692b"}
)

// plot is GFLOP/s over M of one shape on one number of threads.
type plot struct {
	threads, n, k int
	series        []series
	peak          float64 // GFLOP/s; 0 if unknown
	memory        float64 // GFLOP/s that each row of M adds while weights come from memory
}

// series is one library with cold or with hot weights.
type series struct {
	name, weights string
	m             []int
	rate          []float64
}

type picture struct {
	w      *bufio.Writer
	colors map[string]string
	order  []string // names in the legend
}

// Products writes a chart of GFLOP/s over M with the ceilings, one plot for each shape and number
// of threads.
func Products(w io.Writer, rows []kernels.ProductRow, ceilings kernels.ProductCeilings) error {
	plots := plotsOf(rows, ceilings)
	p := picture{w: bufio.NewWriter(w), colors: map[string]string{}}
	p.assignColors(plots)
	columns := min(plotColumns, len(plots))
	lines := (len(plots) + columns - 1) / columns
	legend := p.legendLines(float64(columns) * plotWidth)
	top := 30.0 + 16*float64(len(legend))
	width, height := max(560, float64(columns)*plotWidth), top+float64(lines)*plotHeight+8
	p.f(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="10">`, width, height,
		width, height)
	p.f(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	p.f(`<text x="10" y="20" font-size="13" font-weight="bold">GFLOP/s of C[M,N] = A[M,K] W[N,K]&#7488; over M: %s</text>`, escapeXML(ceilings.Host.Host.CPUModel))
	p.legend(legend)
	for i := range plots {
		p.plot(&plots[i], float64(i%columns)*plotWidth, top+float64(i/columns)*plotHeight)
	}
	p.f("</svg>")
	return p.w.Flush()
}

func (p *picture) f(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder returns no error
	return b.String()
}

// plotsOf groups the figures into plots: by threads, then in the order of the shapes.
func plotsOf(rows []kernels.ProductRow, ceilings kernels.ProductCeilings) (plots []plot) {
	for i := range rows {
		r := &rows[i]
		at := slices.IndexFunc(plots, func(g plot) bool {
			return g.threads == r.Threads && g.n == r.N &&
				g.k == r.K
		})
		if at < 0 {
			plots = append(plots, plot{threads: r.Threads, n: r.N, k: r.K})
			at = len(plots) - 1
		}
		g := &plots[at]
		g.add(r.Peer, r, r.GFLOPS)
		for _, name := range slices.Sorted(maps.Keys(r.Rates)) {
			g.add(name, r, r.Rates[name])
		}
		if peak := ceilings.Peak(cmp.Or(r.Compute, "f32"), r.Threads) / 1e9; peak > 0 {
			g.peak = max(g.peak, peak)
			if r.Weights == kernels.Cold {
				g.memory = max(g.memory, ceilings.PerRow(r)/1e9)
			}
		}
	}
	slices.SortStableFunc(plots, func(a, b plot) int { return cmp.Compare(a.threads, b.threads) })
	return plots
}

func (g *plot) add(name string, r *kernels.ProductRow, rate float64) {
	at := slices.IndexFunc(g.series, func(s series) bool { return s.name == name && s.weights == r.Weights })
	if at < 0 {
		g.series = append(g.series, series{name: name, weights: r.Weights})
		at = len(g.series) - 1
	}
	s := &g.series[at]
	i, _ := slices.BinarySearch(s.m, r.M)
	s.m, s.rate = slices.Insert(s.m, i, r.M), slices.Insert(s.rate, i, rate)
}

// assignColors assigns every library a color, this module first.
func (p *picture) assignColors(plots []plot) {
	var peers []string
	for _, g := range plots {
		for _, s := range g.series {
			r := kernels.ProductRow{Peer: s.name}
			list := &peers
			if r.Ours() {
				list = &p.order
			}
			if !slices.Contains(*list, s.name) {
				*list = append(*list, s.name)
			}
		}
	}
	slices.Sort(peers)
	for i, name := range p.order {
		p.colors[name] = ourColors[i%len(ourColors)]
	}
	for i, name := range peers {
		p.colors[name] = peerColors[i%len(peerColors)]
	}
	p.order = append(p.order, peers...)
}

// Legend entries that are not series.
const (
	legendPeak   = "multiply-add peak"
	legendMemory = "memory ceiling"
	legendMarks  = "filled: cold weights, hollow: hot"
)

// legendLines breaks the legend into lines of the chart's width.
func (p *picture) legendLines(width float64) (lines [][]string) {
	used := math.Inf(1)
	for _, entry := range append(slices.Clone(p.order), legendPeak, legendMemory, legendMarks) {
		if need := legendWidth(entry); used+need > width {
			lines, used = append(lines, nil), 10
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], entry)
		used += legendWidth(entry)
	}
	return lines
}

func legendWidth(entry string) float64 { return 50 + 6.4*float64(len(entry)) }

func (p *picture) legend(lines [][]string) {
	for i, line := range lines {
		x, y := 10.0, 38+16*float64(i)
		for _, entry := range line {
			switch entry {
			case legendPeak:
				p.f(`<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#555555" stroke-dasharray="6 3"/>`, x,
					y-3, x+22, y-3)
			case legendMemory:
				p.f(`<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#555555" stroke-dasharray="2 2"/>`, x,
					y-3, x+22, y-3)
			case legendMarks:
				p.f(`<circle cx="%.0f" cy="%.0f" r="3" fill="#555555"/><circle cx="%.0f" cy="%.0f" r="3" fill="#ffffff" stroke="#555555"/>`, x+6, y-3,
					x+17, y-3)
			default:
				p.f(`<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="%s" stroke-width="%.1f"/>`, x, y-3, x+22,
					y-3, p.colors[entry], strokeOf(entry))
			}
			p.f(`<text x="%.0f" y="%.0f">%s</text>`, x+27, y, escapeXML(entry))
			x += legendWidth(entry)
		}
	}
}

func strokeOf(name string) float64 {
	if r := (kernels.ProductRow{Peer: name}); r.Ours() {
		return 2.4
	}
	return 1.2
}

// axes map M and GFLOP/s to the chart.
type axes struct {
	x, y, w, h  float64 // the area inside the axes
	loM, hiM    float64 // logarithms
	top         float64 // GFLOP/s
	firstM, end int
}

func (a *axes) px(m float64) float64 { return a.x + a.w*(math.Log2(m)-a.loM)/(a.hiM-a.loM) }
func (a *axes) py(rate float64) float64 {
	return a.y + a.h*(1-rate/a.top)
}

func (g *plot) axes(x, y float64) axes {
	a := axes{x: x + plotLeft, y: y + plotTop, w: plotWidth - plotLeft - plotRight,
		h: plotHeight - plotTop - plotBottom, firstM: math.MaxInt}
	a.top = g.peak
	for _, s := range g.series {
		a.firstM, a.end = min(a.firstM, s.m[0]), max(a.end, s.m[len(s.m)-1])
		a.top = max(a.top, slices.Max(s.rate))
	}
	a.top *= 1.06
	a.loM, a.hiM = math.Log2(float64(a.firstM)), math.Log2(float64(a.end))
	if a.loM == a.hiM {
		a.loM, a.hiM = a.loM-1, a.hiM+1
	}
	return a
}

func (p *picture) plot(g *plot, x, y float64) {
	a := g.axes(x, y)
	p.f(`<text x="%.1f" y="%.1f" font-weight="bold">%dx%d, %s</text>`, a.x, y+14, g.n, g.k, message.Plural(g.threads, "thread"))
	p.f(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#fcfcfc" stroke="#999999"/>`, a.x, a.y, a.w, a.h)
	p.grid(g, &a)
	p.ceilings(g, &a)
	for pass := range 2 { // this module on top
		for i := range g.series {
			if s := &g.series[i]; (strokeOf(s.name) > 2) == (pass == 1) {
				p.line(s, &a)
			}
		}
	}
}

// grid draws the marks of both axes.
func (p *picture) grid(g *plot, a *axes) {
	step := math.Pow(10, math.Floor(math.Log10(a.top)))
	for _, f := range []float64{0.1, 0.2, 0.5, 1} {
		if a.top/(step*f) <= 6 {
			step *= f
			break
		}
	}
	for v := 0.0; v <= a.top; v += step {
		p.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e2e2e2"/><text x="%.1f" y="%.1f" text-anchor="end">%.4g</text>`,
			a.x, a.py(v), a.x+a.w, a.py(v), a.x-4, a.py(v)+3.5, v)
	}
	var ms []int
	for _, s := range g.series {
		ms = append(ms, s.m...)
	}
	slices.Sort(ms)
	last := math.Inf(-1)
	for _, m := range slices.Compact(ms) {
		x := a.px(float64(m))
		if x-last < 4+6*float64(len(fmt.Sprint(m))) {
			continue
		}
		last = x
		p.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e2e2e2"/><text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`,
			x, a.y, x, a.y+a.h, x, a.y+a.h+13, m)
	}
	p.f(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="#555555">M</text>`, a.x+a.w/2, a.y+a.h+25)
}

// ceilings draws the multiply-add peak and the memory bound below it.
func (p *picture) ceilings(g *plot, a *axes) {
	if g.peak > 0 {
		p.f(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#555555" stroke-dasharray="6 3"/>`, a.x,
			a.py(g.peak), a.x+a.w, a.py(g.peak))
	}
	if g.memory == 0 {
		return
	}
	var points []string
	const steps = 60
	for i := range steps + 1 {
		m := math.Exp2(a.loM + (a.hiM-a.loM)*float64(i)/steps)
		rate := g.memory * m
		points = append(points, fmt.Sprintf("%.1f,%.1f", a.px(m), a.py(min(rate, g.peak))))
		if rate >= g.peak {
			break
		}
	}
	p.f(`<polyline points="%s" fill="none" stroke="#555555" stroke-dasharray="2 2"/>`, strings.Join(points, " "))
}

func (p *picture) line(s *series, a *axes) {
	color, stroke := p.colors[s.name], strokeOf(s.name)
	var points []string
	for i, m := range s.m {
		points = append(points, fmt.Sprintf("%.1f,%.1f", a.px(float64(m)), a.py(s.rate[i])))
	}
	p.f(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f"/>`, strings.Join(points, " "), color, stroke)
	fill := color
	if s.weights != kernels.Cold {
		fill = "#ffffff"
	}
	for i, m := range s.m {
		p.f(`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" stroke="%s"><title>%s %s, M=%d: %.1f GFLOP/s</title></circle>`,
			a.px(float64(m)), a.py(s.rate[i]), 1.6+stroke/2, fill, color, escapeXML(s.name), s.weights, m, s.rate[i])
	}
}
