package evidence

import (
	"math"
	"slices"
)

// Statistics of paired differences: the Wilcoxon signed-rank test with the Hodges-Lehmann estimate
// and its interval. They assume that differences of equal arms are symmetric about zero, which
// holds for interleaved arms.

const (
	maxPaired  = 400 // with more differences the median is used: the number of pairs grows as the square
	exactRanks = 50  // with more differences the distribution of rank sums is approximated
)

// estimate returns the Hodges-Lehmann estimate, the median of the means of all pairs including each
// difference with itself, and its 95 % interval. Below six differences the interval is their range.
// x must be sorted and not empty.
func estimate(x []float64) (mid, low, high float64) {
	n := len(x)
	if n > maxPaired {
		k := MedianRank(n)
		return (x[(n-1)/2] + x[n/2]) / 2, x[k], x[n-1-k]
	}
	means := make([]float64, 0, n*(n+1)/2)
	for i := range x {
		for _, y := range x[i:] {
			means = append(means, (x[i]+y)/2)
		}
	}
	slices.Sort(means)
	all, k := len(means), criticalRankSum(n)
	return (means[(all-1)/2] + means[all/2]) / 2, means[k], means[all-1-k]
}

// criticalRankSum returns the greatest k such that the sum of the positive ranks of n symmetric
// differences is at most k with probability at most 2.5 %, or 0.
func criticalRankSum(n int) int {
	if n > exactRanks {
		mean, deviation := normalRanks(n)
		return max(0, int(mean-1.96*deviation))
	}
	ranks, sum := make([]int, n), 0.0
	for i := range ranks {
		ranks[i] = i + 1
	}
	for k, w := range rankSums(ranks) {
		if sum += w; sum > 0.025 {
			return max(0, k-1)
		}
	}
	return 0
}

// chance returns the one-sided p-value of the signed-rank test: the probability that symmetric
// differences have this sum of positive ranks or a greater one. Zero differences are dropped and
// equal ones share their ranks.
func chance(x []float64) float64 {
	var sizes []float64
	for _, v := range x {
		if v != 0 {
			sizes = append(sizes, math.Abs(v))
		}
	}
	slices.Sort(sizes)
	ranks, above := make([]int, len(sizes)), 0 // twice the ranks, since equal sizes share half ranks
	for i, v := range sizes {
		ranks[i] = twiceRank(sizes, v)
	}
	for _, v := range x {
		if v > 0 {
			above += twiceRank(sizes, v)
		}
	}
	if n := len(sizes); n > exactRanks {
		mean, deviation := normalRanks(n)
		return math.Erfc((float64(above-1)/2-mean)/(deviation*math.Sqrt2)) / 2
	}
	sum := 0.0
	for _, w := range rankSums(ranks)[above:] {
		sum += w
	}
	return min(1, sum)
}

// twiceRank returns twice the mean rank of v among sorted values.
func twiceRank(sorted []float64, v float64) int {
	first, _ := slices.BinarySearch(sorted, v)
	end, _ := slices.BinarySearch(sorted, math.Nextafter(v, math.Inf(1)))
	return first + 1 + end
}

// rankSums returns the probability of each sum of ranks when each rank is counted with probability
// 1/2.
func rankSums(ranks []int) []float64 {
	ways := []float64{1}
	for _, rank := range ranks {
		next := make([]float64, len(ways)+rank)
		for k, w := range ways {
			next[k] += w / 2
			next[k+rank] += w / 2
		}
		ways = next
	}
	return ways
}

// normalRanks returns the mean and standard deviation of that sum for the ranks 1 to n.
func normalRanks(n int) (mean, deviation float64) {
	m := float64(n)
	return m * (m + 1) / 4, math.Sqrt(m * (m + 1) * (2*m + 1) / 24)
}
