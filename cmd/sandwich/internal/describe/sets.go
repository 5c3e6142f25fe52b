package describe

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/runtime/mem"
)

// printSets writes the figures of PU sets: the saturation curve of each domain in one line, and
// each other figure in a separate line.
func printSets(w io.Writer, sets []profiles.SetFigure) {
	printSaturation(w, sets)
	for _, part := range []struct {
		name, title string
		what        func(profiles.SetFigure) string
	}{
		{profiles.Peak, "peak by set of PUs", func(f profiles.SetFigure) string { return f.ISA + " " + f.Type }},
		{profiles.Flows, "several flows at once", flowText},
		{profiles.Barrier, "barrier", func(profiles.SetFigure) string { return "" }},
		{profiles.AllReduce, "sum between ranks", func(f profiles.SetFigure) string {
			return fmt.Sprintf("%d ranks of %s", f.Ranks, mem.FormatBytes(f.Bytes))
		}},
	} {
		title := "\n" + part.title + ":\n"
		for _, f := range sets {
			if f.Name != part.name {
				continue
			}
			domain := f.Domain
			if what := part.what(f); what != "" {
				domain += ", " + what
			}
			fmt.Fprintf(w, "%s  %-22s  %s  %s%s\n",
				title, domain, message.Plural(f.CPUs.Count(), "PU"), profiles.FormatRate(f.Median, f.Unit), setRange(f))
			title = ""
		}
	}
}

// setRange formats the range of a figure and its PUs.
func setRange(f profiles.SetFigure) string {
	if text := formatRange(f.Figure); text != "" {
		return fmt.Sprintf(" (%s), PUs %s", text, f.CPUs.Brief())
	}
	return ", PUs " + f.CPUs.Brief()
}

// flowText names the readers and the nodes that they read from: "0-23 from node 1 + 24-47 from
// node 0".
func flowText(f profiles.SetFigure) string {
	var out []string
	for _, flow := range f.Flows {
		from := fmt.Sprintf("node %d", flow.Node)
		if flow.Node == profiles.Interleaved {
			from = "all nodes, one after another"
		}
		out = append(out, flow.CPUs.Brief()+" from "+from)
	}
	return strings.Join(out, " + ")
}

// printSaturation writes the bandwidth curve of each domain by number of PUs. Two sets of equal
// size are listed with their PUs.
func printSaturation(w io.Writer, sets []profiles.SetFigure) {
	curves, order := map[string][]profiles.SetFigure{}, []string{}
	for _, f := range sets {
		if f.Name == profiles.Saturation {
			if curves[f.Domain] == nil {
				order = append(order, f.Domain)
			}
			curves[f.Domain] = append(curves[f.Domain], f)
		}
	}
	if len(order) == 0 {
		return
	}
	fmt.Fprintln(w, "\nmemory bandwidth by PUs at work:")
	for _, domain := range order {
		curve := curves[domain]
		slices.SortStableFunc(curve, func(a, b profiles.SetFigure) int { return a.CPUs.Count() - b.CPUs.Count() })
		fmt.Fprintf(w, "  %-18s", domain)
		for _, f := range curve {
			fmt.Fprintf(w, "  %d%s: %s", f.CPUs.Count(), spreadMark(f, curve), profiles.FormatRate(f.Median, f.Unit))
		}
		fmt.Fprintln(w)
	}
}

// spreadMark names the PUs of a set if another set of the domain has the same size.
func spreadMark(f profiles.SetFigure, curve []profiles.SetFigure) string {
	for _, o := range curve {
		if o.CPUs.Count() == f.CPUs.Count() && !o.CPUs.Equal(f.CPUs) {
			return " (" + f.CPUs.Brief() + ")"
		}
	}
	return ""
}
