// Package cluster finds clusters of PUs in a measured matrix, and the transforms that add them to a
// tree.
package cluster

import (
	"fmt"
	"math"
	"slices"

	"sandwich/topotree"
)

// Clustering is a partition of PUs that a measured matrix supports, and that firmware may not show:
// Kunpeng's clusters of four cores, hidden SMT siblings, EPYC's core complexes in a virtual
// machine.
type Clustering struct {
	Sets     []topotree.CPUSet `json:"sets"`     // at least two PUs each, ordered by lowest PU
	Contrast float64           `json:"contrast"` // typical value between neighboring clusters divided by that within a cluster
	Effect   float64           `json:"effect"`   // difference of their logarithms in standard deviations of the residuals
}

// Size returns the number of PUs per cluster, 0 if clusters differ in size.
func (c Clustering) Size() int {
	for _, s := range c.Sets {
		if s.Count() != c.Sets[0].Count() {
			return 0
		}
	}
	return c.Sets[0].Count()
}

// Find returns the clusterings of a symmetric matrix between PUs that are significant, the
// innermost first; each consists of whole clusters of the previous one. Smaller values mean closer
// PUs: round trips of a cache line, or the fraction of its rate that a PU keeps while the other is
// active. m[i][j] belongs to pus[i] and pus[j]. The diagonal is ignored; values that are NaN or not
// positive count as not measured.
//
// The method is average-linkage clustering of the logarithms. Of the cuts before the largest jumps
// of the linkage it takes the finest one in which each cluster has at least two members and the
// effect exceeds effectNeeded.
func Find(pus []int, m [][]float64) ([]Clustering, error) {
	if len(m) != len(pus) {
		return nil, fmt.Errorf("the matrix has %d rows for %d PUs", len(m), len(pus))
	}
	for i, row := range m {
		if len(row) != len(pus) {
			return nil, fmt.Errorf("row %d of the matrix has %d values for %d PUs", i, len(row), len(pus))
		}
	}
	groups := make([][]int, len(pus)) // matrix indexes of each current cluster
	for i := range groups {
		groups[i] = []int{i}
	}
	logs := logMatrix(m)
	var out []Clustering
	for {
		part, effect, contrast := finestCut(logs, groups)
		if part == nil {
			return out, nil
		}
		var merged [][]int
		for _, members := range part {
			var all []int
			for _, g := range members {
				all = append(all, groups[g]...)
			}
			slices.Sort(all)
			merged = append(merged, all)
		}
		slices.SortFunc(merged, func(a, b []int) int { return a[0] - b[0] })
		groups = merged
		c := Clustering{Contrast: contrast, Effect: effect}
		for _, g := range groups {
			var cpus []int
			for _, i := range g {
				cpus = append(cpus, pus[i])
			}
			c.Sets = append(c.Sets, topotree.NewCPUSet(cpus...))
		}
		slices.SortFunc(c.Sets, func(a, b topotree.CPUSet) int { return a.First() - b.First() })
		out = append(out, c)
	}
}

// logMatrix returns the logarithms, since noise and contrast are relative, and averages the two
// directions.
func logMatrix(m [][]float64) [][]float64 {
	usable := func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
	out := make([][]float64, len(m))
	for i := range m {
		out[i] = make([]float64, len(m))
	}
	for i := range m {
		for j := range i {
			a, b := m[i][j], m[j][i]
			v := math.NaN()
			switch {
			case usable(a) && usable(b):
				v = (math.Log(a) + math.Log(b)) / 2
			case usable(a):
				v = math.Log(a)
			case usable(b):
				v = math.Log(b)
			}
			out[i][j], out[j][i] = v, v
		}
	}
	return out
}

// effectNeeded returns the minimum effect in standard deviations for clusters of n PUs. Since
// clustering selects the closest pairs, pure noise has an effect, too, which is larger for fewer
// PUs.
func effectNeeded(n int) float64 { return 2.25 + 10/float64(n) + 80/float64(n*n) }

const minContrast = 1.1 // smaller differences do not matter even if significant

// finestCut clusters groups further and returns their finest significant partition as lists of
// group indexes, with its effect and contrast, or nil.
func finestCut(logs [][]float64, groups [][]int) (part [][]int, effect, contrast float64) {
	if len(groups) < 4 {
		return nil, 0, 0 // fewer than four groups have no two pairs
	}
	d := blockMeans(logs, groups)
	merges := averageLinkage(d)
	for _, cut := range candidateCuts(merges, len(groups)) {
		p := partitionAt(merges, len(groups), cut)
		if len(p) < 2 || len(p) <= len(part) || slices.ContainsFunc(p, func(c []int) bool { return len(c) < 2 }) {
			continue
		}
		if e, c := separation(d, p); e >= effectNeeded(len(groups)) && c >= minContrast {
			part, effect, contrast = p, e, c
		}
	}
	return part, effect, contrast
}

// blockMeans returns the mean of the matrix for each pair of groups, NaN if not measured.
func blockMeans(logs [][]float64, groups [][]int) [][]float64 {
	out := make([][]float64, len(groups))
	for a := range groups {
		out[a] = make([]float64, len(groups))
		for b := range groups {
			sum, n := 0.0, 0
			for _, i := range groups[a] {
				for _, j := range groups[b] {
					if v := logs[i][j]; i != j && !math.IsNaN(v) {
						sum += v
						n++
					}
				}
			}
			out[a][b] = sum / float64(n)
		}
	}
	return out
}
