package kernels

import (
	"math"
	"slices"

	"sandwich/tuner/measure/spread"
)

// productCell identifies one product, whose rounds by several libraries are compared.
type productCell struct {
	threads, m, n, k int
	weights          string
}

func (r *ProductRow) cell() productCell { return productCell{r.Threads, r.M, r.N, r.K, r.Weights} }

// CompareProducts merges the rounds of this module's products, in the order of their first rounds,
// and adds the figures of the peers and the time relative to one row.
func CompareProducts(ours, peers []ProductRow) []ProductRow {
	byCell := map[productCell]map[string][]float64{}
	for i := range peers {
		p := &peers[i]
		if byCell[p.cell()] == nil {
			byCell[p.cell()] = map[string][]float64{}
		}
		byCell[p.cell()][p.Peer] = append(byCell[p.cell()][p.Peer], p.GFLOPS)
	}
	type product struct {
		cell productCell
		name string
	}
	var out []ProductRow
	var rates [][]float64
	at := map[product]int{} // indices in out
	for _, r := range ours {
		i, known := at[product{r.cell(), r.Peer}]
		if !known {
			i = len(out)
			at[product{r.cell(), r.Peer}] = i
			out, rates = append(out, r), append(rates, nil)
		}
		o := &out[i]
		rates[i] = append(rates[i], r.GFLOPS)
		o.Min, o.Max, o.Rounds = min(o.Min, r.Min), max(o.Max, r.Max), o.Rounds+1
	}
	for i := range out {
		out[i].join(rates[i], byCell[out[i].cell()])
	}
	overOneRow(out)
	return out
}

// join sets the medians of the rounds of a product and the best of the peers.
func (r *ProductRow) join(ours []float64, peers map[string][]float64) {
	if len(ours) > 1 {
		r.GFLOPS = spread.Summarize(ours).Median
		r.Median = r.flop() / r.GFLOPS / 1e9
	}
	r.Rates = map[string]float64{}
	for peer, rounds := range peers {
		rate := spread.Summarize(rounds).Median
		r.Rates[peer] = rate
		if rate > r.BestRate || rate == r.BestRate && peer < r.Best {
			r.Best, r.BestRate = peer, rate
		}
	}
	if r.Best == "" {
		return
	}
	best := peers[r.Best]
	ratios := make([]float64, min(len(ours), len(best)))
	for i := range ratios {
		ratios[i] = ours[i] / best[i]
	}
	r.Low, r.High = spread.MedianInterval(ratios)
	r.Ratio = r.GFLOPS / r.BestRate
	if len(ratios) > 1 {
		r.Ratio = spread.Summarize(ratios).Median
	}
}

// knownPeers are the libraries that can be measured; a comparison reports which of them are
// missing.
var knownPeers = []string{"openblas", "blis", "dnnl_sgemm", "dnnl_matmul_any", "dnnl_ip_any", "xsmm_brgemm",
	"mkl", "mkl_pack"}

// AbsentPeers returns the libraries that a comparison lacks.
func AbsentPeers(peers []ProductRow) []string {
	return slices.DeleteFunc(slices.Clone(knownPeers), func(name string) bool {
		return slices.ContainsFunc(peers, func(r ProductRow) bool { return r.Peer == name })
	})
}

// LowestRatio is the ratio that no product may be significantly below.
const LowestRatio = 0.95

// PeerSummary is the result of a comparison on one number of threads.
type PeerSummary struct {
	Threads int
	Means   []PeerMean   // relative to the best peer of each product first, then to each library
	Judged  int          // products with an interval
	Below   []ProductRow // products whose whole interval is below LowestRatio
}

// PeerMean is the geometric mean of this module's GFLOP/s relative to a library's.
type PeerMean struct {
	Name        string
	Mean, Least float64
	Products    int
}

// SummarizePeers summarizes compared rows by number of threads. It omits numbers of threads that no
// peer has.
func SummarizePeers(rows, peers []ProductRow) (out []PeerSummary) {
	for _, threads := range threadsOf(rows) {
		at := slices.DeleteFunc(slices.Clone(rows), func(r ProductRow) bool {
			return r.Threads != threads || r.Best == ""
		})
		if len(at) == 0 {
			continue
		}
		s := PeerSummary{Threads: threads}
		s.Means = append(s.Means, geometricMean("best of each", at, func(r *ProductRow) float64 { return r.Ratio }))
		for _, name := range peersOf(peers) {
			s.Means = append(s.Means, geometricMean(name, at, func(r *ProductRow) float64 {
				if r.Rates[name] == 0 {
					return 0
				}
				return r.GFLOPS / r.Rates[name]
			}))
		}
		for _, r := range at {
			if r.High > 0 {
				s.Judged++
			}
			if r.High > 0 && r.High < LowestRatio {
				s.Below = append(s.Below, r)
			}
		}
		out = append(out, s)
	}
	return out
}

// geometricMean returns the mean over the products that have a ratio.
func geometricMean(name string, rows []ProductRow, ratio func(r *ProductRow) float64) PeerMean {
	sum := 0.0
	out := PeerMean{Name: name, Least: math.Inf(1)}
	for i := range rows {
		if x := ratio(&rows[i]); x > 0 {
			sum += math.Log(x)
			out.Products++
			out.Least = min(out.Least, x)
		}
	}
	out.Mean = math.Exp(sum / float64(max(1, out.Products)))
	return out
}

func threadsOf(rows []ProductRow) (out []int) {
	for _, r := range rows {
		out = append(out, r.Threads)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func peersOf(rows []ProductRow) (out []string) {
	for _, r := range rows {
		out = append(out, r.Peer)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
