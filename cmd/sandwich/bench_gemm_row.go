package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"sandwich/profiles"
	"sandwich/tuner"
)

// gemmRow is one product of bench gemm or of a peer; the first twelve fields are the columns of the
// CSV. Its JSON is stable.
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
	Rate     float64 `json:"gb_per_second,omitempty"` // bytes of cold weights as a file has them, over the time
	OneRow   float64 `json:"time_of_m1,omitempty"`    // the time in times of the same product with M = 1
	Rounds   int     `json:"rounds,omitempty"`
	Best     string  `json:"best_peer,omitempty"`
	BestRate float64 `json:"best_peer_gflops,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	Low      float64 `json:"ratio_low,omitempty"` // 95 % interval, absent below six rounds
	High     float64 `json:"ratio_high,omitempty"`

	rates map[string]float64 // of every peer, at the median
}

const (
	gemmHeader = "peer,threads,M,N,K,gflops,wmode,med_s,min_s,max_s,reps,packed"
	ourName    = "sandwich"
	cold, hot  = "cold", "hot" // whether weights come from memory at each call
)

// ours tells whether the figure is sandwich's.
func (r *gemmRow) ours() bool { return r.Peer == ourName || strings.HasPrefix(r.Peer, ourName+"/") }

func newGEMMRow(peer string, p tuner.ProductTime, fromMemory bool) gemmRow {
	sp := summarize(p.Seconds)
	r := gemmRow{Peer: peer, Threads: p.Threads, M: p.M, N: p.Key.N, K: p.Key.K, Weights: hot, Median: sp.median,
		Min: sp.min, Max: sp.max,
		Reps: len(p.Seconds), Packed: 1, Type: p.Key.Type, Compute: p.Compute.String(), Schedule: p.Schedule.String()}
	r.GFLOPS = r.flop() / r.Median / 1e9
	if fromMemory {
		r.Weights = cold
	}
	return r
}

func (r *gemmRow) flop() float64 { return 2 * float64(r.M) * float64(r.N) * float64(r.K) }

// readGEMM reads figures in the columns of gemmHeader.
func readGEMM(flag, path string) ([]gemmRow, error) {
	f, err := profiles.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer f.Close()
	in := csv.NewReader(io.LimitReader(f, 64<<20))
	in.FieldsPerRecord = strings.Count(gemmHeader, ",") + 1
	var rows []gemmRow
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w; the columns are %s", flag, clip(path, 200), err, gemmHeader)
		}
		if strings.Join(record, ",") == gemmHeader {
			continue
		}
		r, err := parseGEMM(record)
		if err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("%s %s, line %d: %w; the columns are %s", flag, clip(path, 200), line,
				err, gemmHeader)
		}
		rows = append(rows, r)
	}
}

// parseGEMM reads one line. Times may be 0, where they were too short for the digits that tools
// print.
func parseGEMM(record []string) (gemmRow, error) {
	r := gemmRow{Peer: record[0], Weights: record[6]}
	if r.Peer == "" || len(r.Peer) > 64 || strings.ContainsFunc(r.Peer,
		func(c rune) bool { return !unicode.IsPrint(c) }) {
		return r, fmt.Errorf("the peer %.40q is no name of 1 to 64 printable characters", r.Peer)
	}
	if r.Weights != cold && r.Weights != hot {
		return r, fmt.Errorf("wmode is %.40q, not %s or %s", r.Weights, cold, hot)
	}
	names := strings.Split(gemmHeader, ",")
	for _, f := range []struct {
		column, least int
		to            *int
	}{{1, 1, &r.Threads}, {2, 1, &r.M}, {3, 1, &r.N}, {4, 1, &r.K}, {10, 0, &r.Reps}, {11, 0, &r.Packed}} {
		n, err := strconv.Atoi(record[f.column])
		if err != nil || n < f.least || n > 1<<30 {
			return r, fmt.Errorf("%s is %.40q, not a number from %d to %d", names[f.column], record[f.column],
				f.least, 1<<30)
		}
		*f.to = n
	}
	for _, f := range []struct {
		column int
		to     *float64
	}{{5, &r.GFLOPS}, {7, &r.Median}, {8, &r.Min}, {9, &r.Max}} {
		x, err := strconv.ParseFloat(record[f.column], 64)
		if err != nil || !(x >= 0) || x > 1e12 || x == 0 && f.to == &r.GFLOPS {
			return r, fmt.Errorf("%s is %.40q, not a positive number", names[f.column], record[f.column])
		}
		*f.to = x
	}
	return r, nil
}
