package kernels

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"sandwich/plans"
	"sandwich/tuner/measure/spread"
)

// ProductRow is one product of this module or of a peer. The first twelve fields are the columns of
// the CSV. Its JSON is stable.
type ProductRow struct {
	Peer    string  `json:"peer"`
	Threads int     `json:"threads"`
	M       int     `json:"M"`
	N       int     `json:"N"`
	K       int     `json:"K"`
	GFLOPS  float64 `json:"gflops"` // at the median
	Weights string  `json:"wmode"`  // cold or hot
	Median  float64 `json:"med_s"`
	Min     float64 `json:"min_s"`
	Max     float64 `json:"max_s"`
	Reps    int     `json:"reps"`
	Packed  int     `json:"packed"`

	Type        string  `json:"type,omitempty"`
	Compute     string  `json:"compute,omitempty"`
	Schedule    string  `json:"schedule,omitempty"`
	Ceiling     float64 `json:"ceiling_gflops,omitempty"`
	PortCeiling float64 `json:"port_ceiling_gflops,omitempty"` // port throughput of the cores for this kernel
	Busiest     string  `json:"busiest,omitempty"`             // instruction classes that bound it
	// Bytes of cold weights in the file's format, over the time.
	Rate     float64 `json:"gb_per_second,omitempty"`
	OneRow   float64 `json:"time_of_m1,omitempty"` // time relative to the same product with M = 1
	Rounds   int     `json:"rounds,omitempty"`
	Best     string  `json:"best_peer,omitempty"`
	BestRate float64 `json:"best_peer_gflops,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	Low      float64 `json:"ratio_low,omitempty"` // 95 % interval, absent below six rounds
	High     float64 `json:"ratio_high,omitempty"`

	Rates map[string]float64 `json:"-"` // of every peer, at the median
	under plans.Schedule     // of this module, if measured in this run
}

// ProductHeader names the columns of the CSV.
const ProductHeader = "peer,threads,M,N,K,gflops,wmode,med_s,min_s,max_s,reps,packed"

const (
	OurName   = "sandwich"    // peer name of this module's figures, alone or before a slash
	Cold, Hot = "cold", "hot" // whether weights come from memory at each call
)

// Ours reports whether the figure is of this module.
func (r *ProductRow) Ours() bool { return r.Peer == OurName || strings.HasPrefix(r.Peer, OurName+"/") }

// Row returns the product as a row under the name of a library, with cold or hot weights.
func (p *ProductTime) Row(peer string, fromMemory bool) ProductRow {
	sp := spread.Summarize(p.Seconds)
	r := ProductRow{Peer: peer, Threads: p.Threads, M: p.M, N: p.Key.N, K: p.Key.K, Weights: Hot, Median: sp.Median,
		Min: sp.Min, Max: sp.Max,
		Reps: len(p.Seconds), Packed: 1, Type: p.Key.Type, Compute: p.Compute.String(), Schedule: p.Schedule.String(),
		under: p.Schedule}
	r.GFLOPS = r.flop() / r.Median / 1e9
	if fromMemory {
		r.Weights = Cold
	}
	return r
}

func (r *ProductRow) flop() float64 { return 2 * float64(r.M) * float64(r.N) * float64(r.K) }

// ReadProducts reads figures in the columns of ProductHeader. Errors begin with name and say which
// line and column is wrong.
func ReadProducts(name string, r io.Reader) ([]ProductRow, error) {
	in := csv.NewReader(io.LimitReader(r, 64<<20))
	in.FieldsPerRecord = strings.Count(ProductHeader, ",") + 1
	var rows []ProductRow
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; the columns are %s", name, err, ProductHeader)
		}
		if strings.Join(record, ",") == ProductHeader {
			continue
		}
		row, err := parseProduct(record)
		if err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("%s, line %d: %w; the columns are %s", name, line, err, ProductHeader)
		}
		rows = append(rows, row)
	}
}

// parseProduct parses one line. Times may be 0 if they are too short for the printed digits.
func parseProduct(record []string) (ProductRow, error) {
	r := ProductRow{Peer: record[0], Weights: record[6]}
	if r.Peer == "" || len(r.Peer) > 64 || strings.ContainsFunc(r.Peer,
		func(c rune) bool { return !unicode.IsPrint(c) }) {
		return r, fmt.Errorf("the peer %.40q is not a name of 1 to 64 printable characters", r.Peer)
	}
	if r.Weights != Cold && r.Weights != Hot {
		return r, fmt.Errorf("wmode is %.40q, not %s or %s", r.Weights, Cold, Hot)
	}
	names := strings.Split(ProductHeader, ",")
	for _, f := range []struct {
		column, min int
		to          *int
	}{{1, 1, &r.Threads}, {2, 1, &r.M}, {3, 1, &r.N}, {4, 1, &r.K}, {10, 0, &r.Reps}, {11, 0, &r.Packed}} {
		n, err := strconv.Atoi(record[f.column])
		if err != nil || n < f.min || n > 1<<30 {
			return r, fmt.Errorf("%s is %.40q, not a number from %d to %d", names[f.column], record[f.column],
				f.min, 1<<30)
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
