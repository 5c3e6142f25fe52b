package load

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
)

// Sizes of the chart of a sweep, in pixels.
const (
	sweepWidth, sweepHeight = 760.0, 360.0
	sweepLeft, sweepBottom  = 56.0, 44.0
	sweepTop, sweepRight    = 40.0, 190.0
)

// sweepColors distinguish policies, also for color-blind readers (Okabe, Ito: Color universal
// design).
var sweepColors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// SweepSVG draws the fraction of requests within the service level over the multiple of the rate or
// of the level: a color for each policy, solid lines for reactive requests and dashed lines for
// proactive ones.
func SweepSVG(to io.Writer, rows []SweepRow) error {
	w := bufio.NewWriter(to)
	low, high := math.Inf(1), 0.0
	for _, r := range rows {
		low, high = math.Min(low, r.Scale), math.Max(high, r.Scale)
	}
	x := func(scale float64) float64 {
		return sweepLeft + (sweepWidth-sweepLeft-sweepRight)*math.Log(scale/low)/math.Max(math.Log(high/low), 1e-9)
	}
	y := func(share float64) float64 { return sweepTop + (sweepHeight-sweepTop-sweepBottom)*(1-share) }
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" `+
		"font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", sweepWidth, sweepHeight)
	if len(rows) > 0 {
		what := map[string]string{ByRate: "the rate of arrivals", BySLO: "the service level"}[rows[0].Sweep]
		fmt.Fprintf(w, "<text x=\"%.0f\" y=\"20\" font-size=\"14\">simulated: requests within the service level "+
			"over %s"+
			"</text>\n", sweepLeft, what)
		fmt.Fprintf(w, "<text x=\"%.0f\" y=\"%.0f\">multiple of %s</text>\n", sweepLeft, sweepHeight-8, what)
	}
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 0.9, 1} {
		fmt.Fprintf(w, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#dddddd\"/>"+
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.0f %%</text>\n", sweepLeft, y(share),
			sweepWidth-sweepRight, y(share), sweepLeft-6, y(share)+4, 100*share)
	}
	drawn := map[float64]bool{}
	for _, r := range rows {
		if !drawn[r.Scale] {
			drawn[r.Scale] = true
			fmt.Fprintf(w, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n", x(r.Scale),
				sweepHeight-sweepBottom+16, r.Scale)
		}
	}
	for i, s := range sweepSeries(rows) {
		dash := ""
		if s[0].Class != "reactive" {
			dash = ` stroke-dasharray="5 3"`
		}
		color := sweepColors[sweepPolicy(rows, s[0].Policy)%len(sweepColors)]
		fmt.Fprintf(w, `<polyline fill="none" stroke="%s" stroke-width="2"%s points="`, color, dash)
		for _, r := range s {
			fmt.Fprintf(w, "%.1f,%.1f ", x(r.Scale), y(r.Attainment))
		}
		at := sweepTop + 18*float64(i)
		fmt.Fprintf(w, "\"/>\n<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "+
			"stroke-width=\"2\"%s/>"+
			"<text x=\"%.1f\" y=\"%.1f\">%s, %s</text>\n", sweepWidth-sweepRight+10, at, sweepWidth-sweepRight+34, at,
			color, dash, sweepWidth-sweepRight+40, at+4, html.EscapeString(s[0].Policy), s[0].Class)
	}
	fmt.Fprint(w, "</svg>\n")
	return w.Flush()
}

// sweepSeries returns the rows of each policy and class, in the order of their scales.
func sweepSeries(rows []SweepRow) (out [][]SweepRow) {
	at := map[[2]string]int{}
	for _, r := range rows {
		key := [2]string{r.Policy, r.Class}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key], out = i, append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// sweepPolicy returns the index of a policy in order of occurrence.
func sweepPolicy(rows []SweepRow, policy string) int {
	seen := map[string]int{}
	for _, r := range rows {
		if _, ok := seen[r.Policy]; !ok {
			seen[r.Policy] = len(seen)
		}
	}
	return seen[policy]
}
