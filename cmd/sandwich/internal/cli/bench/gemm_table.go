package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/tuner/measure/chart"
	"sandwich/tuner/measure/kernels"
)

// gemmReport prints products, with columns for the comparison if there are peers.
func gemmReport(peers bool) *show.Report[kernels.ProductRow] {
	p := &show.Report[kernels.ProductRow]{
		Columns: []string{"weight NxK", "type", "compute", "threads", "M", "weights", "GFLOP/s", "median", "min", "max",
			"ceiling", "of ceiling", "of ports", "busiest", "GB/s", "of M=1"},
		Numbers: []int{3, 4, 6, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18},
		Cells:   func(r *kernels.ProductRow) []string { return productCells(r, peers) },
		Header:  kernels.ProductHeader,
		Line: func(r *kernels.ProductRow) string {
			return fmt.Sprintf("%s,%d,%d,%d,%d,%.2f,%s,%.9f,%.9f,%.9f,%d,%d", r.Peer, r.Threads, r.M, r.N, r.K,
				r.GFLOPS, r.Weights,
				r.Median, r.Min, r.Max, r.Reps, r.Packed)
		},
	}
	if peers {
		p.Columns = append(p.Columns, "best peer", "GFLOP/s", "ratio", "95 %")
	}
	return p
}

// printGEMM writes our products. CSV holds them as measured; the other formats compare them with
// those of peers.
func printGEMM(w io.Writer, ours, peers []kernels.ProductRow, ceilings kernels.ProductCeilings, format string) error {
	p := gemmReport(len(peers) > 0)
	if format == "csv" {
		return p.Print(w, ours, format)
	}
	rows := kernels.CompareProducts(ours, peers)
	if format == "svg" {
		return chart.Products(w, rows, ceilings)
	}
	if err := p.Print(w, rows, format); err != nil || format != "table" || len(peers) == 0 {
		return err
	}
	if !slices.ContainsFunc(rows, func(r kernels.ProductRow) bool { return r.Best != "" }) {
		_, err := fmt.Fprintln(w, "\nno peer has any of these products; compare the columns threads, M, N, K and "+
			"wmode of the files")
		return err
	}
	return printPeers(w, rows, peers)
}

func productCells(r *kernels.ProductRow, peers bool) []string {
	line := []string{fmt.Sprintf("%dx%d", r.N, r.K), r.Type, r.Compute, strconv.Itoa(r.Threads),
		strconv.Itoa(r.M), r.Weights,
		fmt.Sprintf("%.1f", r.GFLOPS), profiles.FormatSeconds(r.Median), profiles.FormatSeconds(r.Min),
		profiles.FormatSeconds(r.Max),
		"", "", "", r.Busiest, "", ""}
	if r.PortCeiling > 0 {
		line[12] = fmt.Sprintf("%.0f %%", 100*r.GFLOPS/r.PortCeiling)
	}
	if r.Ceiling > 0 {
		line[10], line[11] = fmt.Sprintf("%.0f", r.Ceiling), fmt.Sprintf("%.0f %%", 100*r.GFLOPS/r.Ceiling)
	}
	if r.Rate > 0 {
		line[14] = fmt.Sprintf("%.1f", r.Rate)
	}
	if r.OneRow > 0 {
		line[15] = fmt.Sprintf("%.2f", r.OneRow)
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

// printPeers prints the geometric means of the ratios by thread count and library, and the products
// whose interval is below kernels.LowestRatio.
func printPeers(w io.Writer, rows, peers []kernels.ProductRow) error {
	for _, s := range kernels.SummarizePeers(rows, peers) {
		fmt.Fprintf(w, "\n%s, geometric mean of our GFLOP/s over a library's\n", message.Plural(s.Threads, "thread"))
		for _, m := range s.Means {
			fmt.Fprintf(w, "  %-18s %5.2f  over %d products, least %.2f\n", m.Name, m.Mean, m.Products, m.Least)
		}
		var names []string
		for _, r := range s.Below {
			names = append(names, fmt.Sprintf("%dx%d at M=%d (%.2f to %.2f)", r.N, r.K, r.M, r.Low, r.High))
		}
		switch {
		case s.Judged == 0:
			fmt.Fprintln(w, "  no intervals: they need six rounds of both sides")
		case len(names) == 0:
			fmt.Fprintf(w, "  no product has its 95 %% interval below %.2f\n", kernels.LowestRatio)
		default:
			fmt.Fprintf(w, "  95 %% interval below %.2f: %s\n", kernels.LowestRatio, strings.Join(names, ", "))
		}
	}
	if absent := kernels.AbsentPeers(peers); len(absent) > 0 {
		fmt.Fprintf(w, "not among the peers: %s\n", strings.Join(absent, ", "))
	}
	return nil
}
