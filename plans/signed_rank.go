package plans

import (
	"math"
	"slices"
)

// Statistics of paired differences by the ranks of their sizes (Wilcoxon's signed ranks; the
// estimate and its interval by Hodges and Lehmann 1963). They ask that a difference of nothing has
// even odds of being so far above zero as below it, which arms in turn have, and say more than the
// median alone: of eleven rounds the interval is some 0.6 times as wide.

const (
	mostPaired = 400 // differences, whose means of two are 80,000; of more the median says enough
	exactRanks = 50  // of so many differences at the most all outcomes are counted
)

// estimate is the median of the means of any two differences, each with itself too, and the ends of
// its 95 % interval; below six differences these are the least and the greatest. x is sorted and
// has one at least.
func estimate(x []float64) (mid, low, high float64) {
	n := len(x)
	if n > mostPaired {
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
	all, k := len(means), leastRankSum(n)
	return (means[(all-1)/2] + means[all/2]) / 2, means[k], means[all-1-k]
}

// leastRankSum is the greatest sum of ranks above zero that n differences of nothing fall short of
// or meet with 2.5 % at the most; 0 where even none is likelier.
func leastRankSum(n int) int {
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

// chance is how likely differences of nothing would have so great a sum of ranks above zero, or a
// greater one. Differences of zero say nothing, and equal ones share their ranks.
func chance(x []float64) float64 {
	var sizes []float64
	for _, v := range x {
		if v != 0 {
			sizes = append(sizes, math.Abs(v))
		}
	}
	slices.Sort(sizes)
	ranks, above := make([]int, len(sizes)), 0 // twice the ranks, which are halves where sizes are equal
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

// twiceRank is twice the mean of the ranks of a value among sorted ones.
func twiceRank(sorted []float64, v float64) int {
	first, _ := slices.BinarySearch(sorted, v)
	behind, _ := slices.BinarySearch(sorted, math.Nextafter(v, math.Inf(1)))
	return first + 1 + behind
}

// rankSums is how likely each sum of ranks is where every rank counts with even odds.
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

// normalRanks is the mean and the deviation of the sum of the ranks 1 to n so counted.
func normalRanks(n int) (mean, deviation float64) {
	m := float64(n)
	return m * (m + 1) / 4, math.Sqrt(m * (m + 1) * (2*m + 1) / 24)
}
