// Package plangraph writes execution graphs of forwards as text and as SVG.
package plangraph

import (
	"fmt"
	"io"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/runtime/offload/execgraph"
)

// Text writes the kernels and the edges of graphs as tables.
func Text(w io.Writer, graphs []*execgraph.Graph) error {
	for _, g := range graphs {
		if _, err := fmt.Fprintf(w, "\n%s\n\n", title(g)); err != nil {
			return err
		}
		if err := kernels(w, g); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := edges(w, g); err != nil {
			return err
		}
	}
	return nil
}

// title describes the forward of a graph.
func title(g *execgraph.Graph) string {
	rows := message.Plural(g.Rows, "row")
	if g.Phase == "decode" {
		rows = message.Plural(g.Rows, "sequence")
	}
	took := "predicted time unknown"
	if !g.Unknown {
		took = "predicted " + profiles.FormatSeconds(g.Seconds)
	}
	return fmt.Sprintf("Execution graph of %s, %s after %d positions: %s", g.Phase, rows, g.Context, took)
}

func kernels(w io.Writer, g *execgraph.Graph) error {
	header := []string{"kernel", "layers", "ops", "runs on", "rows", "a layer", "all layers", "bytes a layer",
		"elsewhere"}
	var rows [][]string
	for i := range g.Kernels {
		k := &g.Kernels[i]
		for _, v := range k.Variants {
			if v.Target == k.Bound {
				rows = append(rows, []string{k.Name, show.OrDash(k.Layers), strings.Join(k.Ops, " "), v.Target, v.Rows,
					seconds(&v, 1), seconds(&v, k.Count), bytes(v.Bytes, v.Unknown), show.OrDash(elsewhere(k))})
			}
		}
	}
	return show.Table(w, header, rows, 5, 6, 7)
}

// elsewhere lists the times of a layer on the other targets.
func elsewhere(k *execgraph.Kernel) string {
	var out []string
	for _, v := range k.Variants {
		if v.Target != k.Bound {
			out = append(out, v.Target+" "+seconds(&v, 1))
		}
	}
	return strings.Join(out, ", ")
}

func edges(w io.Writer, g *execgraph.Graph) error {
	var rows [][]string
	for _, e := range g.Edges {
		rows = append(rows, []string{e.From, e.To, e.Carries, bytes(e.Bytes, false), fmt.Sprint(e.Count), moves(&e)})
	}
	return show.Table(w, []string{"from", "to", "carries", "bytes", "times", "moves"}, rows, 3, 4)
}

// moves says whether the data of an edge moves to the memory of another target.
func moves(e *execgraph.Edge) string {
	switch {
	case !e.Moves:
		return "-"
	case e.Overlapped:
		return "yes, when read"
	case e.Seconds == 0:
		return "yes"
	}
	return "yes, " + profiles.FormatSeconds(e.Seconds)
}

func seconds(v *execgraph.Variant, times int) string {
	switch {
	case v.Unknown:
		return "unknown"
	case v.Seconds == 0: // embeddings, which the ceilings do not count
		return "-"
	}
	return profiles.FormatSeconds(float64(times) * v.Seconds)
}

func bytes(n float64, unknown bool) string {
	if unknown {
		return "unknown"
	}
	return profiles.FormatRate(n, "B")
}
