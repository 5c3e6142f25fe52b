package draw

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
)

// Heat is a measured matrix: Values[i][j] is between Labels[i] and Labels[j]; NaN was not measured.
type Heat struct {
	Title  string
	Unit   string
	Labels []string
	Values [][]float64
}

// ramp holds the colors from the smallest value to the largest. They also differ in brightness.
var ramp = []string{"#f7fcf0", "#e0f3db", "#ccebc5", "#a8ddb5", "#7bccc4", "#4eb3d3", "#2b8cbe", "#0868ac", "#084081"}

// scale returns the smallest and largest measured value, without the diagonal if there are others.
func (h Heat) scale() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i, row := range h.Values {
		for j, v := range row {
			if !math.IsNaN(v) && (i != j || len(h.Values) == 1) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return lo, hi
}

// step maps a value to one of n steps, logarithmically if the values span more than a factor of
// four.
func step(v, lo, hi float64, n int) int {
	if lo > 0 && hi/lo > 4 {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	if hi <= lo {
		return 0
	}
	return max(0, min(n-1, int((v-lo)/(hi-lo)*float64(n))))
}

// WriteSVG draws the matrix. Cells of larger matrices are smaller.
func (h Heat) WriteSVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	n := len(h.Values)
	cell := math.Max(3, math.Min(22, 640/math.Max(1, float64(n))))
	lo, hi := h.scale()
	margin := 12.0
	for _, l := range h.Labels {
		margin = math.Max(margin, charWidth*float64(len(l))+8)
	}
	width, height := math.Max(margin+cell*float64(n)+8, 320), 28+margin+cell*float64(n)+40
	fmt.Fprintf(b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="10">`+"\n", width, height, width, height)
	fmt.Fprintf(b,
		`<rect width="100%%" height="100%%" fill="#ffffff"/><text x="4" y="16" font-size="12" font-weight="bold">%s</text>`+"\n", escape(h.Title))
	every := int(math.Ceil(11 / cell)) // labels that would overlap are left out
	for i := range n {
		if i%every == 0 && i < len(h.Labels) {
			y := 28 + margin + cell*(float64(i)+0.5) + 3.5
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", margin-4, y, escape(h.Labels[i]))
			x := margin + cell*(float64(i)+0.5) + 3.5
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" transform="rotate(-90 %.1f %.1f)">%s</text>`+"\n", x, 24+margin, x,
				24+margin, escape(h.Labels[i]))
		}
		for j, v := range h.Values[i] {
			fill, what := "#eeeeee", "not measured"
			if !math.IsNaN(v) && i != j {
				fill, what = ramp[step(v, lo, hi, len(ramp))], fmt.Sprintf("%.4g %s", v, h.Unit)
			}
			title := ""
			if n <= 64 && i < len(h.Labels) && j < len(h.Labels) {
				title = "<title>" + escape(h.Labels[i]+" - "+h.Labels[j]+": "+what) + "</title>"
			}
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.2f" height="%.2f" fill="%s">%s</rect>`+"\n",
				margin+cell*float64(j), 28+margin+cell*float64(i), cell, cell, fill, title)
		}
	}
	y := 28 + margin + cell*float64(n) + 14
	for i, c := range ramp {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="18" height="10" fill="%s"/>`+"\n", margin+float64(i)*18, y, c)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%.4g to %.4g %s</text>`+"\n</svg>\n", margin+float64(len(ramp))*18+6, y+9,
		lo, hi, escape(h.Unit))
	return b.Flush()
}

// WriteText draws the matrix for a terminal in five shades. Several PUs share a cell if the matrix
// is wider than columns (0: 100).
func (h Heat) WriteText(w io.Writer, columns int) error {
	if columns <= 0 {
		columns = 100
	}
	b := bufio.NewWriter(w)
	label := 0
	for _, l := range h.Labels {
		label = max(label, len(l))
	}
	n := len(h.Values)
	fold := max(1, int(math.Ceil(float64(2*n)/math.Max(2, float64(columns-label-2)))))
	lo, hi := h.scale()
	shades := []string{"··", "░░", "▒▒", "▓▓", "██"}
	fmt.Fprintf(b, "%s\n", h.Title)
	for i := 0; i < n; i += fold {
		name := ""
		if i < len(h.Labels) {
			name = h.Labels[i]
		}
		fmt.Fprintf(b, "%*s ", label, name)
		for j := 0; j < n; j += fold {
			v := h.mean(i, j, fold)
			if math.IsNaN(v) {
				b.WriteString("  ")
			} else {
				b.WriteString(shades[step(v, lo, hi, len(shades))])
			}
		}
		b.WriteString("\n")
	}
	fold1 := ""
	if fold > 1 {
		fold1 = fmt.Sprintf(", %d x %d PUs to a cell", fold, fold)
	}
	if lo > hi {
		b.WriteString("nothing was measured\n")
		return b.Flush()
	}
	fmt.Fprintf(b, "%s %s %.4g to %s %.4g %s%s\n", strings.Repeat(" ", label), shades[0], lo, shades[len(shades)-1], hi,
		h.Unit, fold1)
	return b.Flush()
}

// mean returns the mean of the measured off-diagonal values of a block, NaN if there are none.
func (h Heat) mean(i, j, fold int) float64 {
	sum, n := 0.0, 0
	for a := i; a < min(i+fold, len(h.Values)); a++ {
		for c := j; c < min(j+fold, len(h.Values[a])); c++ {
			if v := h.Values[a][c]; a != c && !math.IsNaN(v) {
				sum += v
				n++
			}
		}
	}
	return sum / float64(n)
}
