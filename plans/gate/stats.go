package gate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"sandwich/internal/num"
)

// Interval is an estimate with its 95 % confidence interval.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// scaled multiplies an interval by a factor.
func (i Interval) scaled(by float64) Interval {
	return Interval{i.Median * by, i.Low * by, i.High * by}
}

// Narrow reports whether both ends of the interval are within by of the estimate.
func (i Interval) Narrow(by float64) bool {
	return i.Median > 0 && i.High-i.Median <= by && i.Median-i.Low <= by
}

// maxDeviation returns the largest deviation of the interval from 1.
func (i Interval) maxDeviation() float64 { return max(math.Abs(i.Low-1), math.Abs(i.High-1)) }

// resamples is the number of resamples of a bootstrap.
const resamples = 2000

// arm holds the samples of one side by round. Samples of a round are resampled together.
type arm [][]float64

// rounds returns an arm whose round i has sample i of each list.
func rounds(lists ...[]float64) arm {
	n := math.MaxInt
	for _, l := range lists {
		n = min(n, len(l))
	}
	out := make(arm, n)
	for i := range out {
		for _, l := range lists {
			out[i] = append(out[i], l[i])
		}
	}
	return out
}

func (a arm) all() (out []float64) {
	for _, r := range a {
		out = append(out, r...)
	}
	return out
}

// drawn is a sample with its round.
type drawn struct {
	value float64
	round int
}

// sorted returns the samples in ascending order, for medianOf.
func (a arm) sorted() (out []drawn) {
	for i, r := range a {
		for _, v := range r {
			out = append(out, drawn{v, i})
		}
	}
	slices.SortFunc(out, func(a, b drawn) int { return cmp.Compare(a.value, b.value) })
	return out
}

// draw draws as many rounds as there are, with replacement, and counts each in times.
func draw(rng *rand.Rand, times []int) {
	clear(times)
	for range times {
		times[rng.IntN(len(times))]++
	}
}

// medianOf returns the median of sorted samples, each counted as often as its round was drawn.
func medianOf(list []drawn, times []int) float64 {
	total := 0
	for _, d := range list {
		total += times[d.round]
	}
	seen, low := 0, math.NaN()
	for _, d := range list {
		seen += times[d.round]
		if math.IsNaN(low) && seen > (total-1)/2 {
			low = d.value
		}
		if seen > total/2 {
			return (low + d.value) / 2
		}
	}
	return math.NaN()
}

// ratio returns the ratio of y to x with its percentile bootstrap interval (Efron 1979). For
// interleaved arms it is the median of the ratios within rounds, and rounds are drawn for both arms
// together; otherwise it is the ratio of the medians. The random generator has a fixed seed, so
// equal samples give equal intervals. The result is zero if there is nothing to compare or a sample
// is not a rate.
func ratio(x, y arm, interleaved bool) Interval {
	if len(x) == 0 || len(y) == 0 {
		return Interval{}
	}
	rng := rand.New(rand.NewPCG(2026, uint64(min(len(x), len(y)))))
	var out Interval
	if interleaved && len(x) == len(y) {
		q := quotients(x, y)
		out = bootstrap(num.Median(q.all()), drawsOf(rng, q))
	} else {
		over, under := drawsOf(rng, y), drawsOf(rng, x)
		out = bootstrap(num.Median(y.all())/num.Median(x.all()), func() float64 { return over() / under() })
	}
	for _, v := range []float64{out.Median, out.Low, out.High} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Interval{}
		}
	}
	return out
}

// drawsOf returns a function that returns the median of a new resample at each call.
func drawsOf(rng *rand.Rand, a arm) func() float64 {
	list, times := a.sorted(), make([]int, len(a))
	return func() float64 {
		draw(rng, times)
		return medianOf(list, times)
	}
}

// bootstrap returns an estimate with the interval of the middle 95 % of resamples.
func bootstrap(estimate float64, one func() float64) Interval {
	draws := make([]float64, resamples)
	for i := range draws {
		draws[i] = one()
	}
	slices.Sort(draws)
	const tail = resamples / 40
	return Interval{estimate, draws[tail], draws[resamples-1-tail]}
}

// mannWhitney returns the two-sided p-value of the Mann-Whitney U test. It is exact without ties up
// to exactRanks samples; otherwise it uses the normal approximation with corrections for ties and
// continuity.
func mannWhitney(x, y []float64) float64 {
	n, m := len(x), len(y)
	if n == 0 || m == 0 {
		return 1
	}
	u, ties := rankSum(x, y)
	mean := float64(n) * float64(m) / 2
	if ties == 0 && n+m <= exactRanks {
		return exactU(n, m, int(min(u, float64(n)*float64(m)-u)))
	}
	all := float64(n + m)
	variance := float64(n) * float64(m) / 12 * (all + 1 - ties/(all*(all-1)))
	if variance <= 0 {
		return 1
	}
	z := max(0, math.Abs(u-mean)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

const exactRanks = 40

// rankSum returns the U statistic of x over y, and the sum of t^3-t over groups of t equal values.
func rankSum(x, y []float64) (u, ties float64) {
	ranks, ties := midranks(slices.Concat(x, y))
	for _, r := range ranks[:len(x)] {
		u += r
	}
	return u - float64(len(x)*(len(x)+1))/2, ties
}

// midranks returns the rank of each value, from 1; equal values share their mean rank. ties is the
// sum of t^3-t over groups of t equal values.
func midranks(values []float64) (ranks []float64, ties float64) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	ranks = make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i + 1 // also for NaN, which does not equal itself
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			ranks[k] = float64(i+j+1) / 2
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	return ranks, ties
}

// exactU returns the two-sided probability of at most u for samples of n and m values without ties.
func exactU(n, m, u int) float64 {
	ways := make([][]float64, n+1) // by number of ranks taken and their U
	for i := range ways {
		ways[i] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for r := range n + m {
		for taken := min(n, r+1); taken >= 1; taken-- {
			below := r - (taken - 1) // ranks of the other side below this one
			if below < 0 || below > m {
				continue
			}
			for s := n * m; s >= below; s-- {
				ways[taken][s] += ways[taken-1][s-below]
			}
		}
	}
	tail, total := 0.0, 0.0
	for s, w := range ways[n] {
		total += w
		if s <= u {
			tail += w
		}
	}
	return min(1, 2*tail/total)
}

// holm returns p-values with Holm's correction for multiple comparisons.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(p[a], p[b]), a-b) })
	out := make([]float64, len(p))
	largest := 0.0
	for k, i := range order {
		largest = max(largest, min(1, float64(len(p)-k)*p[i]))
		out[i] = largest
	}
	return out
}
