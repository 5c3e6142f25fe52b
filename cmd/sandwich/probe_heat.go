package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"sandwich/profiles"
	"sandwich/topotree"
)

// matrixTitles say what the matrices of a profile show.
var matrixTitles = map[string]string{
	profiles.LatencyMatrix: "cache line from PU to PU and back",
	profiles.ComputeMatrix: "share of its multiply-add speed that a PU keeps beside another",
	profiles.CacheMatrix:   "share of its cache speed that a PU keeps beside another",
	profiles.MemoryMatrix:  "share of its memory speed that a PU keeps beside another",
	profiles.NodeMatrix:    "bandwidth from the PUs of a node (row) to the memory of a node",
}

// heat is a matrix of a profile as a picture; a diagonal of nothing and other zeros were not measured.
func heat(m *profiles.Matrix) topotree.Heat {
	h := topotree.Heat{Title: m.Name + ": " + matrixTitles[m.Name], Unit: m.Unit}
	scale := 1.0
	if m.Unit == "B/s" {
		scale, h.Unit = 1e-9, "GB/s"
	}
	for i, item := range m.Items {
		h.Labels = append(h.Labels, strconv.Itoa(item))
		row := make([]float64, len(m.Rows[i]))
		for j, v := range m.Rows[i] {
			if row[j] = v * scale; v == 0 {
				row[j] = math.NaN()
			}
		}
		h.Values = append(h.Values, row)
	}
	return h
}

// printStructure shows what a full probe found: matrices as heat maps, the figures of PU sets, and latent structure.
func printStructure(w io.Writer, p *profiles.Profile) error {
	for i := range p.Matrices {
		fmt.Fprintln(w)
		if err := printMatrix(w, heat(&p.Matrices[i])); err != nil {
			return err
		}
	}
	var rows [][]string
	for _, s := range p.Sets {
		rows = append(rows, []string{s.Name, s.Domain, strconv.Itoa(s.CPUs.Count()), shortSet(s.CPUs), formatRate(s.Median, s.Unit), formatRange(s.Figure)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		if err := printTable(w, []string{"measured", "domain", "PUs", "cpus", "median", "min to max"}, rows, 2, 4, 5); err != nil {
			return err
		}
	}
	for _, l := range p.Latent {
		fmt.Fprintf(w, "\nlatent structure: %s\n", l.Text)
		if l.Group != "" {
			fmt.Fprintf(w, "  as a transform: %s\n", l.Group)
		}
	}
	if p.Probe != nil && p.Probe.Partial {
		fmt.Fprintln(w, "\nthe probe was stopped: what is missing was not measured")
	}
	return nil
}

// printMatrix shows a small matrix in numbers and a large one in shades.
func printMatrix(w io.Writer, h topotree.Heat) error {
	if len(h.Labels) > 8 {
		return h.WriteText(w, textWidth)
	}
	fmt.Fprintf(w, "%s, %s\n", h.Title, h.Unit)
	rows := make([][]string, len(h.Values))
	for i, values := range h.Values {
		rows[i] = []string{h.Labels[i]}
		for _, v := range values {
			cell := "-"
			if !math.IsNaN(v) {
				cell = fmt.Sprintf("%.3g", v)
			}
			rows[i] = append(rows[i], cell)
		}
	}
	return printTable(w, append([]string{""}, h.Labels...), rows, numbersFrom(0, len(h.Labels)+1)...)
}

// writeProfileSVG draws the machine, or the matrix of that name.
func writeProfileSVG(w io.Writer, p *profiles.Profile, matrix string) error {
	if matrix == "" {
		return p.Machine.Tree.WriteSVG(w, topotree.DrawOptions{Title: p.Host.CPUModel})
	}
	if m := p.Matrix(matrix); m != nil {
		return heat(m).WriteSVG(w)
	}
	var names []string
	for _, m := range p.Matrices {
		names = append(names, m.Name)
	}
	return usageError(fmt.Errorf("--matrix %s: the profile holds %s; `sandwich probe --measure full` measures them", clip(matrix, 40), orNone(strings.Join(names, ", "))))
}
