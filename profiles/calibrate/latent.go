package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sandwich/internal/num"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/cluster"
)

// interpret derives structure from the figures: clusters in the matrices, PUs that share a core,
// and classes of PUs and nodes of distinct speed.
func (f *full) interpret() error {
	p := f.profile
	tree, err := p.Machine.Usable()
	if err != nil {
		return err
	}
	for _, m := range p.Matrices {
		if m.Name == profiles.NodeMatrix {
			continue
		}
		found, err := latent(tree, m)
		if err != nil {
			return err
		}
		p.Latent = append(p.Latent, found...)
	}
	classes := speedClasses(f.solo, p.Matrix(profiles.NodeMatrix), p.Machine)
	if len(classes) > 1 && !knownColors(tree, classes) {
		if p.Machine, err = p.Machine.WithMeasured(classes); err != nil {
			return err
		}
	}
	return nil
}

// latent returns the clusterings that one matrix shows, the innermost first.
func latent(tree *topotree.Tree, m profiles.Matrix) ([]profiles.Latent, error) {
	rows := make([][]float64, len(m.Rows))
	for i, r := range m.Rows {
		rows[i] = r
	}
	clusterings, err := cluster.Find(m.Items, rows)
	if err != nil {
		return nil, err
	}
	if len(clusterings) == 0 && m.Name == profiles.ComputeMatrix {
		clusterings = sharedCores(m)
	}
	var out []profiles.Latent
	for _, c := range clusterings {
		q := cluster.Propose(tree, c)
		l := profiles.Latent{Matrix: m.Name, Sets: c.Sets, Contrast: round3(c.Contrast), Effect: round3(c.Effect),
			Text: q.Text}
		if q.Known != topotree.KindMachine {
			l.Known = q.Known.String()
		}
		if q.Group != (topotree.Transform{}) {
			l.Group = q.Group.String()
		}
		out = append(out, l)
	}
	return out, nil
}

// SharedCore is the fraction of its multiply-add rate below which a PU is assumed to share a core
// with the other PU.
const SharedCore = 0.75

// sharedCores finds PUs that share multipliers if a matrix is too small for clustering, or too few
// cores are shared.
func sharedCores(m profiles.Matrix) []cluster.Clustering {
	var sets []topotree.CPUSet
	var within, between []float64
	taken := map[int]bool{}
	for i, a := range m.Items {
		core := []int{a}
		for j, b := range m.Items {
			if v := m.Rows[i][j]; v > 0 && i != j {
				if v < SharedCore {
					core = append(core, b)
					within = append(within, v)
				} else {
					between = append(between, v)
				}
			}
		}
		if len(core) > 1 && !taken[a] {
			for _, pu := range core {
				taken[pu] = true
			}
			sets = append(sets, topotree.NewCPUSet(core...))
		}
	}
	if len(sets) == 0 {
		return nil
	}
	// compared with cores that keep all of their rate
	c := cluster.Clustering{Sets: sets, Contrast: 1 / num.Median(within)}
	if len(between) > 0 {
		c.Contrast = num.Median(between) / num.Median(within)
	}
	return []cluster.Clustering{c}
}

// classStep is the minimum ratio of the speeds of two classes.
const classStep = 1.12

// noiseStep is the minimum difference of the speeds of two classes in multiples of their noise.
const noiseStep = 4

// speed is the measured speed of a PU or of its memory.
type speed struct{ rate, noise float64 }

// speedClasses groups PUs of equal speed, the fastest first: by the multiply-add rate of single
// PUs, then by the bandwidth of their memory node. If the speed of some PU is unknown, that kind of
// speed is ignored.
func speedClasses(solo map[int][]float64, nodes *profiles.Matrix, m *topotree.Machine) []topotree.MeasuredClass {
	compute := map[int]speed{}
	for pu, samples := range solo {
		if len(samples) >= minSamples {
			f := profiles.NewFigure("", samples)
			compute[pu] = speed{f.Median, f.Noise}
		}
	}
	memory := map[int]speed{}
	if nodes != nil {
		for i, id := range nodes.Items {
			n := m.Node(id)
			if n == nil || nodes.Rows[i][i] <= 0 || len(nodes.Noises) <= i {
				continue
			}
			pus := n.CPUs.Intersect(m.Allowed)
			for pu := range pus.All() {
				memory[pu] = speed{nodes.Rows[i][i] / float64(pus.Count()), nodes.Noises[i][i]}
			}
		}
	}
	byCompute, byMemory := steps(compute, m.Allowed), steps(memory, m.Allowed)
	type key struct{ compute, memory int }
	sets := map[key][]int{}
	var keys []key
	for pu := range m.Allowed.All() {
		k := key{byCompute[pu], byMemory[pu]}
		if sets[k] == nil {
			keys = append(keys, k)
		}
		sets[k] = append(sets[k], pu)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(a.compute-b.compute, a.memory-b.memory) })
	var out []topotree.MeasuredClass
	for _, k := range keys {
		name, pu := "measured", sets[k][0]
		if byCompute != nil {
			name += fmt.Sprintf(" %.3g GFLOP/s a PU", compute[pu].rate/1e9)
		}
		if byMemory != nil {
			name += fmt.Sprintf(" %.3g GB/s of memory a PU", memory[pu].rate/1e9)
		}
		out = append(out, topotree.MeasuredClass{Name: name, CPUs: topotree.NewCPUSet(sets[k]...)})
	}
	return out
}

// steps numbers classes of speed from the fastest down: a new class starts where the next PU is
// slower by classStep and by more than the noise. It returns nil if all PUs belong to one class or
// the speed of some PU is unknown.
func steps(speeds map[int]speed, pus topotree.CPUSet) map[int]int {
	order := pus.Slice()
	for _, pu := range order {
		if _, ok := speeds[pu]; !ok {
			return nil
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(speeds[b].rate, speeds[a].rate) })
	out := map[int]int{}
	n := 0
	for i, pu := range order {
		if i > 0 {
			a, b := speeds[order[i-1]], speeds[pu]
			if a.rate > b.rate*max(classStep, 1+noiseStep*max(a.noise, b.noise)) {
				n++
			}
		}
		out[pu] = n
	}
	if n == 0 {
		return nil
	}
	return out
}

// knownColors reports whether the tree's colors separate the classes already.
func knownColors(tree *topotree.Tree, classes []topotree.MeasuredClass) bool {
	for _, info := range tree.Palette() {
		hits := 0
		for _, c := range classes {
			if c.CPUs.Intersects(info.CPUs) {
				hits++
			}
		}
		if hits > 1 {
			return false
		}
	}
	return true
}

// round3 rounds to three decimals.
func round3(v float64) float64 { return math.Round(v*1e3) / 1e3 }
