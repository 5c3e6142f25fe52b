package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// gemmCell names one product; rounds of it by several libraries are compared.
type gemmCell struct {
	threads, m, n, k int
	weights          string
}

func (r *gemmRow) cell() gemmCell { return gemmCell{r.Threads, r.M, r.N, r.K, r.Weights} }

// compareGEMM joins the rounds of our products, in the order of their first rounds, and puts the
// figures of the peers beside them.
func compareGEMM(ours, peers []gemmRow) []gemmRow {
	byCell := map[gemmCell]map[string][]float64{}
	for i := range peers {
		p := &peers[i]
		if byCell[p.cell()] == nil {
			byCell[p.cell()] = map[string][]float64{}
		}
		byCell[p.cell()][p.Peer] = append(byCell[p.cell()][p.Peer], p.GFLOPS)
	}
	type product struct {
		cell gemmCell
		name string
	}
	var out []gemmRow
	var rates [][]float64
	at := map[product]int{} // in out
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
	return out
}

// join takes the medians of the rounds of a product and the best of the peers.
func (r *gemmRow) join(ours []float64, peers map[string][]float64) {
	if len(ours) > 1 {
		r.GFLOPS = summarize(ours).median
		r.Median = r.flop() / r.GFLOPS / 1e9
	}
	r.rates = map[string]float64{}
	for peer, rounds := range peers {
		rate := summarize(rounds).median
		r.rates[peer] = rate
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
	r.Low, r.High = medianInterval(ratios)
	r.Ratio = r.GFLOPS / r.BestRate
	if len(ratios) > 1 {
		r.Ratio = summarize(ratios).median
	}
}

// medianInterval is the 95 % interval of the median by order statistics, which assumes nothing
// about how noise is distributed; 0 and 0 below the six values that it needs. With n values, the
// median lies outside the i-th smallest and the i-th largest with probability 2 * P(Binomial(n,
// 1/2) < i).
func medianInterval(values []float64) (low, high float64) {
	n := len(values)
	tail, term, i := 0.0, math.Pow(0.5, float64(n)), 0 // term is P(Binomial = i)
	for ; i < n/2 && 2*(tail+term) <= 0.05; i++ {
		tail += term
		term *= float64(n-i) / float64(i+1)
	}
	if i == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[i-1], s[n-i]
}

// knownPeers are the libraries that ../shared/peers can measure; a comparison says which of them
// are missing.
var knownPeers = []string{"openblas", "blis", "dnnl_sgemm", "dnnl_matmul_any", "dnnl_ip_any", "xsmm_brgemm",
	"mkl", "mkl_pack"}

// lowest is the ratio that no product may be surely below.
const lowest = 0.95

// summarizeGEMM writes what a comparison comes to: geometric means over the products, per number of
// threads, and the products below the mark.
func summarizeGEMM(w io.Writer, rows []gemmRow, peers []gemmRow) error {
	var b strings.Builder
	absent := slices.DeleteFunc(slices.Clone(knownPeers), func(name string) bool {
		return slices.ContainsFunc(peers, func(r gemmRow) bool { return r.Peer == name })
	})
	for _, threads := range threadsOf(rows) {
		at := slices.DeleteFunc(slices.Clone(rows), func(r gemmRow) bool {
			return r.Threads != threads ||
				r.Best == ""
		})
		if len(at) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s, geometric mean of our GFLOP/s over a library's\n", plural(threads, "thread"))
		line := func(name string, ratio func(r *gemmRow) float64) {
			mean, cells, least := geometricMean(at, ratio)
			fmt.Fprintf(&b, "  %-18s %5.2f  over %d products, least %.2f\n", name, mean, cells, least)
		}
		line("best of each", func(r *gemmRow) float64 { return r.Ratio })
		for _, name := range peersOf(peers) {
			line(name, func(r *gemmRow) float64 {
				if r.rates[name] == 0 {
					return 0
				}
				return r.GFLOPS / r.rates[name]
			})
		}
		b.WriteString(belowMark(at))
	}
	if len(absent) > 0 {
		fmt.Fprintf(&b, "not among the peers: %s\n", strings.Join(absent, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// belowMark names the products whose whole interval lies below the mark.
func belowMark(rows []gemmRow) string {
	var names []string
	judged := 0
	for _, r := range rows {
		if r.High > 0 {
			judged++
			if r.High < lowest {
				names = append(names, fmt.Sprintf("%dx%d at M=%d (%.2f to %.2f)", r.N, r.K, r.M, r.Low, r.High))
			}
		}
	}
	switch {
	case judged == 0:
		return "  no intervals: they take six rounds of both sides\n"
	case len(names) == 0:
		return fmt.Sprintf("  no product has its 95 %% interval below %.2f\n", lowest)
	}
	return fmt.Sprintf("  95 %% interval below %.2f: %s\n", lowest, strings.Join(names, ", "))
}

// geometricMean is over the products that have a ratio.
func geometricMean(rows []gemmRow, ratio func(r *gemmRow) float64) (mean float64, cells int, least float64) {
	sum := 0.0
	least = math.Inf(1)
	for i := range rows {
		if x := ratio(&rows[i]); x > 0 {
			sum += math.Log(x)
			cells++
			least = min(least, x)
		}
	}
	return math.Exp(sum / float64(max(1, cells))), cells, least
}

func threadsOf(rows []gemmRow) (out []int) {
	for _, r := range rows {
		out = append(out, r.Threads)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func peersOf(rows []gemmRow) (out []string) {
	for _, r := range rows {
		out = append(out, r.Peer)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
