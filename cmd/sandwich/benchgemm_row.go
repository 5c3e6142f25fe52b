package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/gguf"
	"sandwich/tuner"
)

// gemmRow is one product of bench gemm or of a peer; the first twelve fields are the columns of the CSV.
type gemmRow struct {
	Peer    string  `json:"peer"`
	Threads int     `json:"threads"`
	M       int     `json:"M"`
	N       int     `json:"N"`
	K       int     `json:"K"`
	GFLOPS  float64 `json:"gflops"` // of the median
	Weights string  `json:"wmode"`  // cold or hot
	Median  float64 `json:"med_s"`
	Min     float64 `json:"min_s"`
	Max     float64 `json:"max_s"`
	Reps    int     `json:"reps"`
	Packed  int     `json:"packed"`

	Type     string  `json:"type,omitempty"`
	Compute  string  `json:"compute,omitempty"`
	Schedule string  `json:"schedule,omitempty"`
	Roof     float64 `json:"roof_gflops,omitempty"`
	Best     string  `json:"best_peer,omitempty"`
	BestRate float64 `json:"best_peer_gflops,omitempty"`
}

const gemmHeader = "peer,threads,M,N,K,gflops,wmode,med_s,min_s,max_s,reps,packed"

func newGEMMRow(host *profiles.Profile, plan *plans.Plan, p tuner.ProductTime, cold bool) gemmRow {
	sp := summarize(p.Seconds)
	r := gemmRow{Peer: "sandwich", Threads: p.Threads, M: p.M, N: p.Key.N, K: p.Key.K, Weights: "hot", Median: sp.median, Min: sp.min, Max: sp.max,
		Reps: len(p.Seconds), Packed: 1, Type: p.Key.Type, Compute: p.Compute.String(), Schedule: p.Schedule.String()}
	r.GFLOPS = 2 * float64(r.M) * float64(r.N) * float64(r.K) / r.Median / 1e9
	if cold {
		r.Weights = "cold"
	}
	r.Roof = gemmRoof(host, p, cold) / 1e9
	return r
}

// gemmRoof is what the multiply-add peak and, for cold weights, the memory bandwidth allow, in FLOP/s; 0 where a roof is
// not known. Hot weights may lie in any cache, whose bandwidth is no bound that can be named.
func gemmRoof(host *profiles.Profile, p tuner.ProductTime, cold bool) float64 {
	peak := roofline.ComputeCeiling(host, p.Schedule.Kernel.ISA.String(), p.Compute.String())
	memory := roofline.BandwidthCeiling(host, "memory")
	if !peak.Known() || !memory.Known() {
		return 0
	}
	roof := peak.At(p.Threads)
	t, err := gguf.ParseType(p.Key.Type)
	if !cold || err != nil {
		return roof
	}
	bytes := float64(t.RowBytes(p.Key.K)) * float64(p.Key.N)
	flop := 2 * float64(p.M) * float64(p.Key.N) * float64(p.Key.K)
	return min(roof, memory.At(p.Threads)*flop/bytes)
}

func printGEMM(w io.Writer, rows []gemmRow, format string) error {
	switch format {
	case "json":
		return printJSON(w, rows)
	case "csv":
		fmt.Fprintln(w, gemmHeader)
		for _, r := range rows {
			if _, err := fmt.Fprintf(w, "%s,%d,%d,%d,%d,%.2f,%s,%.9f,%.9f,%.9f,%d,%d\n", r.Peer, r.Threads, r.M, r.N, r.K, r.GFLOPS, r.Weights,
				r.Median, r.Min, r.Max, r.Reps, r.Packed); err != nil {
				return err
			}
		}
		return nil
	}
	header := []string{"weight NxK", "type", "compute", "threads", "M", "weights", "GFLOP/s", "median", "min", "max", "roof", "of roof"}
	peers := slices.ContainsFunc(rows, func(r gemmRow) bool { return r.Best != "" })
	if peers {
		header = append(header, "best peer", "GFLOP/s", "ratio")
	}
	var table [][]string
	for _, r := range rows {
		table = append(table, r.cells(peers))
	}
	return printTable(w, header, table, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14)
}

func (r *gemmRow) cells(peers bool) []string {
	line := []string{fmt.Sprintf("%dx%d", r.N, r.K), r.Type, r.Compute, strconv.Itoa(r.Threads), strconv.Itoa(r.M), r.Weights,
		fmt.Sprintf("%.1f", r.GFLOPS), formatSeconds(r.Median), formatSeconds(r.Min), formatSeconds(r.Max), "", ""}
	if r.Roof > 0 {
		line[10], line[11] = fmt.Sprintf("%.0f", r.Roof), fmt.Sprintf("%.0f %%", 100*r.GFLOPS/r.Roof)
	}
	switch {
	case peers && r.Best == "":
		line = append(line, "", "", "")
	case peers:
		line = append(line, r.Best, fmt.Sprintf("%.1f", r.BestRate), fmt.Sprintf("%.2f", r.GFLOPS/r.BestRate))
	}
	return line
}

// readPeers reads figures of other libraries in the columns of gemmHeader.
func readPeers(path string) ([]gemmRow, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := csv.NewReader(io.LimitReader(f, 64<<20))
	in.FieldsPerRecord = 12
	var rows []gemmRow
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("--peers %s: %w", path, err)
		}
		if record[0] == "peer" {
			continue
		}
		r := gemmRow{Peer: record[0], Weights: record[6]}
		_, err = fmt.Sscan(record[1]+" "+record[2]+" "+record[3]+" "+record[4]+" "+record[5], &r.Threads, &r.M, &r.N, &r.K, &r.GFLOPS)
		if err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("--peers %s, line %d: the columns are %s", path, line, gemmHeader)
		}
		rows = append(rows, r)
	}
}

// joinPeers puts the best other library beside each product.
func joinPeers(rows, peers []gemmRow) {
	for i := range rows {
		r := &rows[i]
		for _, p := range peers {
			same := p.Threads == r.Threads && p.M == r.M && p.N == r.N && p.K == r.K && p.Weights == r.Weights && p.Peer != "sandwich"
			if same && p.GFLOPS > r.BestRate {
				r.Best, r.BestRate = p.Peer, p.GFLOPS
			}
		}
	}
}
