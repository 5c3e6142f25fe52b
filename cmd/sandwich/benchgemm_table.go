package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
)

// printGEMM writes compared products.
func printGEMM(w io.Writer, rows, peers []gemmRow, roofs gemmRoofs, format string) error {
	switch format {
	case "json":
		return printJSON(w, rows)
	case "svg":
		return drawGEMM(w, rows, roofs)
	}
	header := []string{"weight NxK", "type", "compute", "threads", "M", "weights", "GFLOP/s", "median", "min", "max", "roof", "of roof"}
	if len(peers) > 0 {
		header = append(header, "best peer", "GFLOP/s", "ratio", "95 %")
	}
	var table [][]string
	for _, r := range rows {
		table = append(table, r.cells(len(peers) > 0))
	}
	if err := printTable(w, header, table, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14); err != nil || len(peers) == 0 {
		return err
	}
	if !slices.ContainsFunc(rows, func(r gemmRow) bool { return r.Best != "" }) {
		_, err := fmt.Fprintln(w, "\nnone of these products is among those of the peers: compare the columns threads, M, N, K and wmode")
		return err
	}
	return summarizeGEMM(w, rows, peers)
}

func (r *gemmRow) cells(peers bool) []string {
	line := []string{fmt.Sprintf("%dx%d", r.N, r.K), r.Type, r.Compute, strconv.Itoa(r.Threads), strconv.Itoa(r.M), r.Weights,
		fmt.Sprintf("%.1f", r.GFLOPS), formatSeconds(r.Median), formatSeconds(r.Min), formatSeconds(r.Max), "", ""}
	if r.Roof > 0 {
		line[10], line[11] = fmt.Sprintf("%.0f", r.Roof), fmt.Sprintf("%.0f %%", 100*r.GFLOPS/r.Roof)
	}
	if !peers {
		return line
	}
	if r.Best == "" {
		return append(line, "", "", "", "")
	}
	interval := ""
	if r.High > 0 {
		interval = fmt.Sprintf("%.2f to %.2f", r.Low, r.High)
	}
	return append(line, r.Best, fmt.Sprintf("%.1f", r.BestRate), fmt.Sprintf("%.2f", r.Ratio), interval)
}
