package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/internal/num"
	"sandwich/profiles"
	"sandwich/topotree"
)

// maxItems is the maximum number of PUs of a matrix, which limits the size of a profile.
const maxItems = 192

// pairing is a quantity that is measured between two PUs.
type pairing struct {
	name, unit string
	take       func(t *trial) error // appends a sample of two workers to t.a and t.b, or of one worker to t.a
	// the value is the fraction of the single rate that both keep; singles are measured too
	share bool
}

// pairs measures a quantity between all allowed PUs and adds its matrix. If there is too little
// time for all pairs, it measures those of whole domains.
func (f *full) pairs(ctx context.Context, until time.Time, q pairing) error {
	pus := f.pool.PUs()
	fit, err := f.pairsThatFit(until, q)
	if err != nil {
		return err
	}
	items := sampled(f.profile.Machine, min(maxItems, itemsOfPairs(fit)))
	if len(items) < len(pus) {
		f.notes = append(f.notes, fmt.Sprintf("%s was measured between %d of %d PUs: %s", q.name, len(items), len(pus),
			topotree.NewCPUSet(items...)))
	}
	var trials []*trial
	if q.share {
		for _, pu := range items {
			trials = append(trials, &trial{workers: []int{slices.Index(pus, pu)}})
		}
	}
	for i, a := range items {
		for _, b := range items[:i] {
			trials = append(trials, &trial{workers: []int{slices.Index(pus, a), slices.Index(pus, b)}})
		}
	}
	err = f.rounds(ctx, trials, until, q.take)
	f.addMatrix(q, items, trials)
	return err
}

// pairsThatFit estimates how many pairs can be measured in the time with the minimum number of
// samples. It times a few pairs.
func (f *full) pairsThatFit(until time.Time, q pairing) (int, error) {
	n := f.pool.Size()
	probes := [][]int{{0, 1}, {0, n - 1}, {n / 2, n - 1}, {0, n / 2}}
	took := 0
	began := time.Now()
	for i, w := range probes {
		if i == 1 {
			began = time.Now() // the first one warms up
		}
		if w[0] == w[1] {
			continue
		}
		if err := q.take(&trial{workers: w}); err != nil {
			return 0, err
		}
		if i > 0 {
			took++
		}
	}
	each := time.Since(began) / time.Duration(max(1, took))
	return int(time.Until(until) / max(each, time.Microsecond) / minSamples), nil
}

// itemsOfPairs returns the largest number of items with at most that many pairs, at least two.
func itemsOfPairs(pairs int) int {
	n := 2
	for (n+1)*n/2 <= pairs {
		n++
	}
	return n
}

// addMatrix adds a symmetric matrix of the trials of pairs. Pairs without a sample are 0.
func (f *full) addMatrix(q pairing, items []int, trials []*trial) {
	m := profiles.Matrix{Name: q.name, Items: items, Unit: q.unit}
	for range items {
		m.Rows = append(m.Rows, make(profiles.MatrixRow, len(items)))
		m.Noises = append(m.Noises, make(profiles.MatrixRow, len(items)))
	}
	pus := f.pool.PUs()
	single := map[int]float64{}
	smallest := math.MaxInt
	var noises []float64
	for _, t := range trials {
		if len(t.workers) == 1 {
			single[t.workers[0]] = num.Median(t.a)
			if q.name == profiles.ComputeMatrix {
				f.solo[pus[t.workers[0]]] = t.a
			}
			continue
		}
		values := t.a
		if q.share {
			values = shares(t, single)
		}
		smallest = min(smallest, len(values))
		if len(values) == 0 {
			continue
		}
		fig := profiles.NewFigure(q.unit, values)
		i, j := slices.Index(items, pus[t.workers[0]]), slices.Index(items, pus[t.workers[1]])
		m.Rows[i][j], m.Rows[j][i] = fig.Median, fig.Median
		noise := math.Round(fig.Noise*1e3) / 1e3
		m.Noises[i][j], m.Noises[j][i] = noise, noise
		noises = append(noises, noise)
	}
	if len(noises) == 0 {
		f.notes = append(f.notes, q.name+": there was no time for a sample")
		return
	}
	m.N, m.Noise = max(1, smallest), num.Median(noises)
	f.matrices = append(f.matrices, m)
}

// shares returns, per sample, the mean fraction of their single rates that two PUs keep.
func shares(t *trial, single map[int]float64) []float64 {
	a, b := single[t.workers[0]], single[t.workers[1]]
	var out []float64
	for k := range min(len(t.a), len(t.b)) {
		if v := (t.a[k]/a + t.b[k]/b) / 2; v > 0 && !math.IsInf(v, 1) {
			out = append(out, v)
		}
	}
	return out
}

// sampled returns at most n allowed PUs in ascending order: all if they fit, else whole nodes of
// the highest tree level of which at least two fit, spread evenly over the machine, so that the
// matrix shows structure within and between nodes.
func sampled(m *topotree.Machine, n int) []int {
	all := m.Allowed.Slice()
	if len(all) <= n {
		return all
	}
	for d := range m.Tree.Depth() {
		blocks, largest := allowedBlocks(m, d)
		if largest > n/2 {
			continue
		}
		if largest < min(8, n/2) {
			break // too small to have structure
		}
		take := n / largest
		var out []int
		for i := range take {
			out = append(out, blocks[i*len(blocks)/take].Slice()...)
		}
		slices.Sort(out)
		return out
	}
	return all[:n]
}

// allowedBlocks returns the allowed PUs of each node at a depth, and the size of the largest set.
func allowedBlocks(m *topotree.Machine, depth int) (blocks []topotree.CPUSet, largest int) {
	for _, node := range m.Tree.Level(depth) {
		if s := node.CPUs.Intersect(m.Allowed); !s.IsEmpty() {
			blocks = append(blocks, s)
			largest = max(largest, s.Count())
		}
	}
	return blocks, largest
}
