package load

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"time"

	"sandwich/runtime/engine"
	"sandwich/runtime/sched"
)

// Colors of the timeline: warm for reactive work, cold for proactive work.
const (
	colorReactive  = "#d1495b"
	colorDecode    = "#edae49"
	colorProactive = "#2e6f95"
	colorQuantum   = "#7fc8f8"
	colorMixed     = "#8f6bb3"
	colorWait      = "#d9d9d9"
)

const (
	svgWidth  = 1200
	svgLeft   = 120
	svgRow    = 7
	maxInRows = 150 // maximum requests drawn
)

// Timeline draws a run: each request from its arrival to its end, and below them the work of the
// cores.
func (run *Run) Timeline(to io.Writer) error {
	w := bufio.NewWriter(to)
	outcomes := run.Outcomes[:min(len(run.Outcomes), maxInRows)]
	var end time.Duration
	for i := range outcomes {
		end = max(end, outcomes[i].End)
	}
	x := func(at time.Duration) float64 {
		return svgLeft + (svgWidth-svgLeft-20)*at.Seconds()/max(end.Seconds(), 1e-9)
	}
	top := 70
	cores := top + svgRow*len(outcomes) + 30
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" `+
		"font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", svgWidth, cores+110)
	fmt.Fprintf(w, "<text x=\"10\" y=\"20\" font-size=\"15\">%d requests, policy %s: %d halts, %d quanta</text>\n",
		len(outcomes), html.EscapeString(run.Policy), run.Sched.Stops, run.Sched.Quanta)
	legend(w, 10, 42)
	bar := func(from, to time.Duration, y, height int, color, title string) {
		fmt.Fprintf(w, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>%s</title></rect>\n",
			x(from), y, max(0.3, x(to)-x(from)), height, color, title)
	}
	for i := range outcomes {
		o, y := &outcomes[i], top+i*svgRow
		color := colorReactive
		if o.Class == sched.Proactive {
			color = colorProactive
		}
		if !o.Finished() {
			fmt.Fprintf(w, "<text x=\"%.1f\" y=\"%d\" font-size=\"8\">refused</text>\n", x(o.At), y+svgRow)
			continue
		}
		title := fmt.Sprintf("%s, %d tokens in, %d out: first after %s, last after %s", o.Class, o.Prompt, o.Tokens,
			o.TTFT().Round(time.Millisecond), o.Latency().Round(time.Millisecond))
		bar(o.At, o.First, y, svgRow-2, colorWait, title)
		bar(o.First, o.End, y, svgRow-2, color, title)
	}
	if len(run.Forwards) > 0 {
		fmt.Fprintf(w, "<text x=\"10\" y=\"%d\">the cores</text>\n", cores+22)
	}
	for _, f := range merge(run.Forwards, end/svgWidth) {
		color, what := colorOf(&f)
		bar(f.Began.Sub(run.Began), f.Ended.Sub(run.Began), cores, 34, color, what)
		if f.Halted {
			at := x(f.Ended.Sub(run.Began))
			fmt.Fprintf(w, "<path d=\"M%.2f %d v8\" stroke=\"black\" stroke-width=\"0.7\"/>\n", at, cores+36)
		}
	}
	for i := range 11 {
		at := end * time.Duration(i) / 10
		fmt.Fprintf(w, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.1f s</text>\n", x(at), cores+65,
			at.Seconds())
	}
	fmt.Fprint(w, "</svg>\n")
	return w.Flush()
}

// merge joins adjacent forwards of one kind that are too short to be visible.
func merge(list []engine.Forward, minimum time.Duration) (out []engine.Forward) {
	for _, f := range list {
		if n := len(out); n > 0 && f.Began.Sub(out[n-1].Ended) < minimum {
			last := &out[n-1]
			a, _ := colorOf(last)
			if b, _ := colorOf(&f); a == b && !last.Halted {
				last.Ended, last.Halted = f.Ended, f.Halted
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

func colorOf(f *engine.Forward) (color, what string) {
	reactive, proactive := f.Rows[sched.Reactive] > 0, f.Rows[sched.Proactive] > 0
	switch {
	case f.Prefill && reactive:
		return colorReactive, "reactive prefill"
	case f.Prefill && f.Quantum:
		return colorQuantum, "quantum of a proactive prefill"
	case f.Prefill:
		return colorProactive, "proactive prefill"
	case reactive && proactive:
		return colorMixed, "decode of both classes"
	case reactive:
		return colorDecode, "reactive decode"
	}
	return "#5aa469", "proactive decode"
}

func legend(w io.Writer, x, y int) {
	for _, l := range [][2]string{{colorWait, "waits and prefills"}, {colorReactive, "reactive"},
		{colorProactive, "proactive"}, {colorQuantum, "quantum"}, {colorDecode, "reactive decode"},
		{colorMixed, "decode of both"}, {"#5aa469", "proactive decode"}} {
		fmt.Fprintf(w, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>", x, y, l[0])
		fmt.Fprintf(w, "<text x=\"%d\" y=\"%d\">%s</text>\n", x+16, y+11, l[1])
		x += 40 + 8*len(l[1])
	}
	fmt.Fprintf(w, "<path d=\"M%d %d v12\" stroke=\"black\"/><text x=\"%d\" y=\"%d\">halt</text>\n", x, y, x+6, y+11)
}
