package metrics

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// namedHistogram is a metric with a histogram for each set of labels.
type namedHistogram struct {
	name, help string
	of         []labeled
}

// labeled is a histogram with its labels.
type labeled struct {
	labels [][2]string
	histogram
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// exposition writes samples in the Prometheus text format, version 0.0.4, also under previous
// names. Samples are sorted by name and labels; each name has one header.
func exposition(samples []Metric, hists []namedHistogram) []byte {
	samples, hists = withOldNames(samples, hists)
	slices.SortStableFunc(samples, func(a, b Metric) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.CompareFunc(a.Labels, b.Labels, func(x, y [2]string) int {
			return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
		}))
	})
	var out []byte
	for i, m := range samples {
		if i == 0 || samples[i-1].Name != m.Name {
			kind := "gauge"
			if m.Counter {
				kind = "counter"
			}
			out = appendHeader(out, m.Name, m.Help, kind)
		}
		out = appendSample(out, m.Name, m.Labels, m.Value)
	}
	for _, h := range hists {
		out = appendHeader(out, h.name, h.help, "histogram")
		for i := range h.of {
			out = h.of[i].appendTo(out, h.name, h.of[i].labels)
		}
	}
	return out
}

// appendTo appends the buckets, sum and count of h.
func (h *histogram) appendTo(out []byte, name string, labels [][2]string) []byte {
	var n uint64
	for i, c := range h.counts {
		n += c
		le := math.Inf(1)
		if i < len(bounds) {
			le = bounds[i]
		}
		out = appendSample(out, name+"_bucket", append(slices.Clip(labels),
			[2]string{"le", formatFloat(le)}), float64(n))
	}
	out = appendSample(out, name+"_sum", labels, h.sum)
	return appendSample(out, name+"_count", labels, float64(n))
}

// appendHeader appends the help and type of a metric.
func appendHeader(out []byte, name, help, kind string) []byte {
	out = append(out, "# HELP "+name+" "+escapeHelp.Replace(help)+"\n"...)
	return append(out, "# TYPE "+name+" "+kind+"\n"...)
}

// appendSample appends one sample.
func appendSample(out []byte, name string, labels [][2]string, v float64) []byte {
	out = append(out, name...)
	for i, l := range labels {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		out = append(out, sep+l[0]+`="`+escapeLabel.Replace(l[1])+`"`...)
	}
	if len(labels) > 0 {
		out = append(out, '}')
	}
	out = append(out, ' ')
	out = append(out, formatFloat(v)...)
	return append(out, '\n')
}

// formatFloat formats a sample value.
func formatFloat(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
