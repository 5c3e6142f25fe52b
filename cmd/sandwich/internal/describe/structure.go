package describe

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/topotree/draw"
)

// printStructure writes the results of a full probe; nothing if there was none.
func printStructure(w io.Writer, p *profiles.Profile) error {
	if err := printMatrices(w, p.Matrices); err != nil {
		return err
	}
	printSets(w, p.Sets)
	if p.Probe == nil || p.Probe.Mode != "full" {
		return nil
	}
	fmt.Fprintln(w)
	for _, l := range p.Latent {
		how := ""
		if l.Contrast > 0 {
			how = fmt.Sprintf(" (%s, contrast %.2f)", l.Matrix, l.Contrast)
		}
		fmt.Fprintf(w, "found: %s%s\n", l.Text, how)
	}
	if m := p.Matrix(profiles.ComputeMatrix); m != nil {
		if v := m.Values(); len(v) > 0 && v[0] >= calibrate.SharedCore {
			fmt.Fprintf(w, "found: every PU has the multipliers of a core to itself: any two keep at least %.0f "+
				"%% of their speed\n", 100*min(v[0], 1))
		}
	}
	if len(p.Latent) == 0 {
		fmt.Fprintln(w, "found: no structure between the PUs that the tree does not show")
	}
	for _, x := range p.Groups() {
		fmt.Fprintf(w, "try:   sandwich tree --profile HOST.yaml --apply \"%s\"\n", x)
	}
	if m := p.Matrix(profiles.LatencyMatrix); m != nil && len(m.Items) >= 4 {
		fmt.Fprintln(w)
		if err := heatOf(*m).WriteText(w, drawingWidth()); err != nil {
			return err
		}
	}
	state := "took"
	if p.Probe.Partial {
		state = "was stopped after"
	}
	_, err := fmt.Fprintf(w, "\nthe full probe %s %.1f s\n", state, p.Probe.Seconds)
	return err
}

// printMatrices writes a row of figures for each matrix.
func printMatrices(w io.Writer, matrices []profiles.Matrix) error {
	if len(matrices) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, m := range matrices {
		v := m.Values()
		if len(v) == 0 {
			continue
		}
		source := m.Source
		switch {
		case m.N > 0:
			source = fmt.Sprintf("measured, noise %.1f %%", 100*m.Noise)
		case m.Assumed:
			source = "assumed"
		}
		rows = append(rows, []string{m.Name, show.OrUnknown(m.Meaning()), formatEntry(v[0], m.Unit),
			formatEntry(v[len(v)/2], m.Unit), formatEntry(v[len(v)-1], m.Unit), source})
	}
	return show.Table(w, []string{"matrix", "what", "least", "median", "most", "source"}, rows, 2, 3, 4)
}

func formatEntry(v float64, unit string) string {
	switch unit {
	case "share":
		return fmt.Sprintf("%.0f %%", 100*v)
	case "ns":
		return fmt.Sprintf("%.3g ns", v)
	}
	return profiles.FormatRate(v, unit)
}

// heatOf returns a heat map of a matrix. Unmeasured cells are blank.
func heatOf(m profiles.Matrix) draw.Heat {
	title := fmt.Sprintf("%s: %s", m.Name, m.Meaning())
	if m.N > 0 {
		title += fmt.Sprintf(" (%s, noise %.1f %%)", m.Unit, 100*m.Noise)
	}
	h := draw.Heat{Title: title, Unit: m.Unit}
	for i, row := range m.Rows {
		h.Labels = append(h.Labels, strconv.Itoa(m.Items[i]))
		line := make([]float64, len(row))
		for j, v := range row {
			if line[j] = v; v == 0 {
				line[j] = math.NaN()
			}
		}
		h.Values = append(h.Values, line)
	}
	return h
}

// Matrix writes one matrix as a heat map, SVG or data.
func Matrix(w io.Writer, m *profiles.Matrix, format string) error {
	switch format {
	case "svg":
		return heatOf(*m).WriteSVG(w)
	case "json":
		return show.JSON(w, m)
	case "yaml":
		text, err := profiles.EncodeYAML(m)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	return heatOf(*m).WriteText(w, drawingWidth())
}
