package cluster

import (
	"cmp"
	"math"
	"slices"
)

// merge joins two clusters, identified by their lowest members, at a mean distance.
type merge struct {
	into, from int
	height     float64
}

// averageLinkage clusters agglomeratively by mean distance over the measured pairs and returns the
// merges, the closest first. It caches nearest neighbors and takes about n^2 steps.
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

// candidateCuts returns the numbers of merges before the largest jumps of the linkage.
func candidateCuts(merges []merge, n int) []int {
	const limit = 12
	type jump struct {
		at   int
		size float64
	}
	var jumps []jump
	for i := (n + 1) / 2; i < len(merges); i++ { // with fewer merges some PU is alone
		jumps = append(jumps, jump{i, merges[i].height - merges[i-1].height})
	}
	slices.SortFunc(jumps, func(a, b jump) int { return cmp.Compare(b.size, a.size) })
	var out []int
	for _, j := range jumps[:min(limit, len(jumps))] {
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

// separation measures the distance between clusters: the mean over clusters of the difference
// between the mean distance to the nearest other cluster and the mean distance within, in standard
// deviations of the values around the mean of their block, and as a ratio. Both are 0 if one
// cluster's difference is less than half the mean, since it is then probably part of another
// cluster. Blocks of distant clusters have separate means, so that an outer structure such as NUMA
// does not hide an inner one.
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
	smallest := math.Inf(1)
	for a := range part {
		within, s, n := block(part[a], part[a])
		squares += s
		freedom += n - 2 // the two directions of a pair count as one value
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
		smallest = math.Min(smallest, near-within)
	}
	gap /= float64(len(part))
	if math.IsNaN(gap) || math.IsInf(gap, 0) || smallest < gap/2 {
		return 0, 0
	}
	sd := math.Sqrt(squares / math.Max(1, freedom))
	return gap / math.Max(sd, 1e-9), math.Exp(gap)
}
