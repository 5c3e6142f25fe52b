package topotree

import (
	"fmt"
	"math"
	"slices"
)

// Clustering is one partition that a measured matrix supports: the latent structure that firmware
// does not show (Kunpeng's clusters of four, hidden SMT, EPYC's CCX under a hypervisor).
type Clustering struct {
	Sets     []CPUSet `json:"sets"`     // at least two PUs each, ordered by lowest PU
	Contrast float64  `json:"contrast"` // typical value between neighboring clusters / within a cluster
	Effect   float64  `json:"effect"`   // the same difference of logarithms, in standard deviations of the residue
}

// Size returns the number of PUs per cluster, 0 when clusters differ in size.
func (c Clustering) Size() int {
	for _, s := range c.Sets {
		if s.Count() != c.Sets[0].Count() {
			return 0
		}
	}
	return c.Sets[0].Count()
}

// FindClusters looks for clusters in a symmetric matrix between PUs, where a smaller value means
// closer: cache-line round trips, or the share of its speed that a PU keeps while the other works.
// It returns the partitions that stand out of the noise, the innermost first, each made of whole
// clusters of the one before; none when the matrix is noise. m[i][j] belongs to pus[i] and pus[j];
// the diagonal is not looked at; values that are NaN or not positive were not measured.
//
// Method: average-linkage clustering of the logarithms; of the cuts before the largest jumps of the
// linkage the finest is taken in which every cluster has two members and stands apart, by an effect
// that noise does not reach (see effectNeeded).
func FindClusters(pus []int, m [][]float64) ([]Clustering, error) {
	if len(m) != len(pus) {
		return nil, fmt.Errorf("a matrix of %d rows for %d PUs", len(m), len(pus))
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
			c.Sets = append(c.Sets, NewCPUSet(cpus...))
		}
		slices.SortFunc(c.Sets, func(a, b CPUSet) int { return a.First() - b.First() })
		out = append(out, c)
	}
}

// logMatrix takes logarithms, since noise and contrast are both relative, and averages the two
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

// effectNeeded is how many standard deviations clusters among n things must stand apart. Clustering
// picks the closest pairs, so it sees an effect in pure noise too, the more the fewer things there
// are. With this bound and minContrast, TestNoiseHasNoClusters finds clusters in none of its random
// matrices.
func effectNeeded(n int) float64 { return 2.25 + 10/float64(n) + 80/float64(n*n) }

const minContrast = 1.1 // a smaller difference is not a bottleneck, however significant

// finestCut clusters groups further and returns the finest partition of them (lists of group
// indexes) that stands out, with its effect and contrast; nil when none does.
func finestCut(logs [][]float64, groups [][]int) (part [][]int, effect, contrast float64) {
	if len(groups) < 4 {
		return nil, 0, 0 // with three things, two pairs are impossible
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

// blockMeans averages the matrix over pairs of groups; NaN where nothing was measured.
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
