package topotree

import (
	"cmp"
	"math"
	"slices"
)

// merge joins two clusters, named by their lowest members, at a mean distance.
type merge struct {
	into, from int
	height     float64
}

// averageLinkage clusters agglomeratively by mean distance over the measured pairs and returns the
// merges from the closest to the farthest. Each step looks only at cached nearest neighbors, some
// n^2 work in all.
func averageLinkage(d [][]float64) []merge {
	n := len(d)
	sum, count := make([][]float64, n), make([][]float64, n)
	for i := range d {
		sum[i], count[i] = make([]float64, n), make([]float64, n)
		for j, v := range d[i] {
			if i != j && !math.IsNaN(v) {
				sum[i][j], count[i][j] = v, 1
			}
		}
	}
	alive := make([]bool, n)
	nearest := make([]int, n)
	mean := func(i, j int) float64 {
		if count[i][j] == 0 {
			return math.Inf(1)
		}
		return sum[i][j] / count[i][j]
	}
	find := func(i int) {
		nearest[i] = -1
		for j := range n {
			if j != i && alive[j] && (nearest[i] < 0 || mean(i, j) < mean(i, nearest[i])) {
				nearest[i] = j
			}
		}
	}
	for i := range alive {
		alive[i] = true
	}
	for i := range alive {
		find(i)
	}
	var out []merge
	for range n - 1 {
		best := -1
		for i := range n {
			if alive[i] && (best < 0 || mean(i, nearest[i]) < mean(best, nearest[best])) {
				best = i
			}
		}
		a, b := min(best, nearest[best]), max(best, nearest[best])
		out = append(out, merge{a, b, mean(a, b)})
		alive[b] = false
		for j := range n {
			if alive[j] && j != a {
				sum[a][j] += sum[b][j]
				count[a][j] += count[b][j]
				sum[j][a], count[j][a] = sum[a][j], count[a][j]
			}
		}
		find(a)
		for j := range n {
			if alive[j] && j != a && (nearest[j] == a || nearest[j] == b) {
				find(j)
			} else if alive[j] && j != a && mean(j, a) < mean(j, nearest[j]) {
				nearest[j] = a
			}
		}
	}
	return out
}

// candidateCuts returns after how many merges to stop: before each of the largest jumps of the
// linkage.
func candidateCuts(merges []merge, n int) []int {
	const most = 12
	type jump struct {
		at   int
		size float64
	}
	var jumps []jump
	for i := (n + 1) / 2; i < len(merges); i++ { // fewer merges leave a PU alone
		jumps = append(jumps, jump{i, merges[i].height - merges[i-1].height})
	}
	slices.SortFunc(jumps, func(a, b jump) int { return cmp.Compare(b.size, a.size) })
	var out []int
	for _, j := range jumps[:min(most, len(jumps))] {
		out = append(out, j.at)
	}
	return out
}

// partitionAt returns the clusters after the first cut merges.
func partitionAt(merges []merge, n, cut int) [][]int {
	owner := make([]int, n)
	for i := range owner {
		owner[i] = i
	}
	members := make([][]int, n)
	for i := range members {
		members[i] = []int{i}
	}
	for _, m := range merges[:cut] {
		members[m.into] = append(members[m.into], members[m.from]...)
		members[m.from] = nil
	}
	return slices.DeleteFunc(members, func(c []int) bool { return len(c) == 0 })
}

// separation measures how far clusters stand apart: the mean over clusters of (mean distance to the
// nearest other cluster - mean distance within), in standard deviations of the values around their
// block's mean, and the same difference as a ratio. Both are 0 when one cluster stands apart by
// less than half the mean: it is a part of another, cut off by chance. Blocks between far clusters
// have means of their own, so that an outer structure (NUMA) does not drown an inner one.
func separation(d [][]float64, part [][]int) (effect, contrast float64) {
	block := func(a, b []int) (mean, squares, n float64) {
		var sum float64
		for _, i := range a {
			for _, j := range b {
				if v := d[i][j]; i != j && !math.IsNaN(v) {
					sum += v
					n++
				}
			}
		}
		mean = sum / n
		for _, i := range a {
			for _, j := range b {
				if v := d[i][j]; i != j && !math.IsNaN(v) {
					squares += (v - mean) * (v - mean)
				}
			}
		}
		return mean, squares, n
	}
	var gap, squares, freedom float64
	least := math.Inf(1)
	for a := range part {
		within, s, n := block(part[a], part[a])
		squares += s
		freedom += n - 2 // both directions of a pair are one value
		near := math.Inf(1)
		for b := range part {
			if b == a {
				continue
			}
			mean, s, n := block(part[a], part[b])
			near = math.Min(near, mean)
			squares += s
			freedom += math.Max(0, n-1)
		}
		gap += near - within
		least = math.Min(least, near-within)
	}
	gap /= float64(len(part))
	if math.IsNaN(gap) || math.IsInf(gap, 0) || least < gap/2 {
		return 0, 0
	}
	sd := math.Sqrt(squares / math.Max(1, freedom))
	return gap / math.Max(sd, 1e-9), math.Exp(gap)
}
