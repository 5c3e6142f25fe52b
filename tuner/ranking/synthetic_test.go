package ranking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
)

// syntheticHost is a machine whose behavior follows the laws of synthetic_sim_test.go. The ranking
// sees only its host.yaml, with noise.
type syntheticHost struct {
	kind                        string
	nodes, clusters, cores, smt int       // each per unit of the former
	speed                       []float64 // FLOP/s of float32 by core
	one                         []float64 // B/s of one PU alone, by core
	clusterCap                  float64   // B/s of a cluster with up to clusterKnee active PUs
	clusterKnee                 int
	clusterLoss                 float64 // fraction that each further PU costs
	nodeCap                     []float64
	nodeKnee                    int
	nodeLoss                    float64
	link                        float64 // B/s from one node to another
	far                         float64 // relative latency of a page on another node
	barrier, perLevel           float64 // seconds of a barrier of two PUs, and for each doubling
	shown                       bool    // the system reports the clusters as caches
	holes                       []int   // PUs that the cpuset excludes
}

// coresAll returns the number of cores.
func (h *syntheticHost) coresAll() int { return h.nodes * h.clusters * h.cores }

func (h *syntheticHost) pus() int { return h.coresAll() * h.smt }

// core returns a PU's core; the second threads are numbered after all first ones.
func (h *syntheticHost) core(pu int) int    { return pu % h.coresAll() }
func (h *syntheticHost) cluster(pu int) int { return h.core(pu) / h.cores }
func (h *syntheticHost) node(pu int) int    { return h.core(pu) / (h.cores * h.clusters) }

// plant draws a machine.
func plant(seed uint64) *syntheticHost {
	r := rand.New(rand.NewPCG(seed, 77))
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	kinds := []string{"clusters", "snc", "ccx", "hybrid", "slow node", "holes", "throttled"}
	h := &syntheticHost{kind: kinds[int(seed)%len(kinds)], nodes: 1 + r.IntN(4), clusters: 1 + r.IntN(4),
		cores: 2 + r.IntN(3), smt: 1, shown: r.IntN(2) == 0, barrier: between(0.5e-6, 2e-6),
		perLevel: between(0.2e-6, 1.5e-6)}
	switch h.kind {
	case "clusters", "ccx":
		h.clusters, h.cores = 3+r.IntN(3), 4
	case "snc":
		h.nodes = 4
	case "slow node":
		h.nodes = 2 + r.IntN(3)
	case "hybrid":
		h.nodes, h.clusters, h.cores, h.shown = 1, 3, 4, true
	}
	if r.IntN(4) == 0 {
		h.smt = 2
	}
	h.draw(between, r)
	return h
}

// draw draws the speeds of the machine.
func (h *syntheticHost) draw(between func(lo, hi float64) float64, r *rand.Rand) {
	speed, one := between(40e9, 150e9), between(6e9, 14e9)
	perNode := h.clusters * h.cores
	for range h.coresAll() {
		h.speed, h.one = append(h.speed, speed), append(h.one, one)
	}
	h.clusterKnee, h.clusterLoss = max(1, h.cores-1), between(0, 0.12)
	h.clusterCap = one * float64(h.clusterKnee) * between(0.8, 1.1)
	h.nodeKnee, h.nodeLoss = max(2, int(float64(perNode)*between(0.4, 1))), between(0, 0.03)
	for range h.nodes {
		h.nodeCap = append(h.nodeCap, one*float64(perNode)*between(0.35, 0.9))
	}
	for i := range h.nodeCap {
		h.nodeCap[i] = h.nodeCap[0]
	}
	h.link, h.far = h.nodeCap[0]*between(0.15, 0.9), between(1.1, 2.5)
	slow := func(from, to int, by float64) {
		for c := from; c < to; c++ {
			h.speed[c] *= by
			h.one[c] *= math.Sqrt(by)
		}
	}
	switch h.kind {
	case "hybrid":
		slow(2*h.cores, h.coresAll(), between(0.3, 0.6))
	case "slow node":
		n := r.IntN(h.nodes)
		h.nodeCap[n] *= between(0.3, 0.7)
		slow(n*perNode, (n+1)*perNode, between(0.5, 0.9))
	case "throttled":
		c := r.IntN(h.coresAll())
		slow(c, c+1, between(0.2, 0.5))
	case "holes":
		for range 1 + r.IntN(2) {
			h.holes = append(h.holes, r.IntN(h.coresAll()))
		}
	}
}

// machine returns the description of the machine.
func (h *syntheticHost) machine(t testing.TB) *topotree.Machine {
	t.Helper()
	online := topotree.CPURange(0, h.pus()-1)
	d := topotree.Description{Source: "synthetic", Arch: "x86_64", Online: online,
		Allowed: online.Minus(topotree.NewCPUSet(h.holes...))}
	by := func(n int, of func(int) int) []topotree.CPUSet {
		sets := make([]topotree.CPUSet, n)
		for pu := range h.pus() {
			sets[of(pu)] = sets[of(pu)].Union(topotree.NewCPUSet(pu))
		}
		return sets
	}
	d.Levels = []topotree.LevelData{{Kind: topotree.KindCore, Sets: by(h.coresAll(), h.core)}}
	if h.shown {
		d.Levels = append(d.Levels, topotree.LevelData{Kind: topotree.KindL3, Bytes: 16 << 20,
			Sets: by(h.nodes*h.clusters, h.cluster)})
	}
	for i, set := range by(h.nodes, h.node) {
		d.Memory = append(d.Memory, topotree.MemoryNode{ID: i, CPUs: set, Bytes: 64 << 30})
	}
	bySpeed := map[float64][]int{}
	var speeds []float64
	for pu := range h.pus() {
		v := h.speed[h.core(pu)]
		if bySpeed[v] == nil {
			speeds = append(speeds, v)
		}
		bySpeed[v] = append(bySpeed[v], pu)
	}
	slices.SortFunc(speeds, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
	if len(speeds) > 1 {
		for _, v := range speeds {
			d.Measured = append(d.Measured, topotree.MeasuredClass{Name: fmt.Sprintf("%.3g", v),
				CPUs: topotree.NewCPUSet(bySpeed[v]...)})
		}
	}
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// profile returns the figures of a full probe, each with noise.
func (h *syntheticHost) profile(t testing.TB, seed uint64, noise float64) *profiles.Profile {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 78))
	p := profiles.New(h.machine(t), profiles.Identity{ISA: []string{"avx2"}})
	fig := func(v float64, unit string) profiles.Figure {
		v *= 1 + noise*max(-2, min(2, r.NormFloat64()))
		return profiles.Figure{Median: v, Min: 0.95 * v, Max: 1.05 * v, N: 15, Unit: unit}
	}
	w := probeWriter{h: h, p: p, fig: fig}
	w.peaks()
	w.saturation()
	w.nodes()
	w.waits()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// probeWriter adds figures to a profile.
type probeWriter struct {
	h   *syntheticHost
	p   *profiles.Profile
	fig func(v float64, unit string) profiles.Figure
}

func (w *probeWriter) first(n int) topotree.CPUSet { return w.p.FirstPUs(n) }

func (w *probeWriter) peaks() {
	usable := w.p.UsablePUs().Count()
	for _, n := range countsUpTo(usable) {
		set := w.first(n)
		w.p.Ceilings = append(w.p.Ceilings,
			profiles.Ceiling{Kind: profiles.Compute, ISA: "avx2", Type: "f32", PUs: n, CPUs: set,
				Figure: w.fig(w.h.peak(set), "FLOP/s")},
			profiles.Ceiling{Kind: profiles.Compute, ISA: "avx2", Type: "int8", PUs: n, CPUs: set,
				Figure: w.fig(2*w.h.peak(set), "OP/s")},
			profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: n, CPUs: set,
				Figure: w.fig(w.h.local(set), "B/s")})
	}
	for _, class := range w.p.Machine.Measured {
		if set := class.CPUs.Intersect(w.p.Allowed()); !set.IsEmpty() {
			one := topotree.NewCPUSet(set.First())
			w.p.Sets = append(w.p.Sets, profiles.SetFigure{Name: profiles.Peak, Domain: "class " + class.Name,
				ISA: "avx2", Type: "f32", CPUs: one, Figure: w.fig(w.h.peak(one), "FLOP/s")})
		}
	}
}

func countsUpTo(n int) (out []int) {
	for k := 1; k < n; k += max(1, k/3) {
		out = append(out, k)
	}
	return append(out, n)
}

// saturation adds the curve of every node and cluster, by its first PUs, and by PUs spread over the
// clusters of a node.
func (w *probeWriter) saturation() {
	seen := map[string]bool{}
	add := func(domain string, set topotree.CPUSet) {
		if !set.IsEmpty() && !seen[set.Key()] {
			seen[set.Key()] = true
			w.p.Sets = append(w.p.Sets, profiles.SetFigure{Name: profiles.Saturation, Domain: domain, CPUs: set,
				Figure: w.fig(w.h.local(set), "B/s")})
		}
	}
	ofNode, ofCluster := map[int][]int{}, map[int][]int{}
	for _, pu := range w.p.RankedPUs() {
		ofNode[w.h.node(pu)] = append(ofNode[w.h.node(pu)], pu)
		ofCluster[w.h.cluster(pu)] = append(ofCluster[w.h.cluster(pu)], pu)
	}
	var latent []topotree.CPUSet
	for c := range w.h.nodes * w.h.clusters {
		pus := ofCluster[c]
		set := topotree.NewCPUSet(pus...)
		name := profiles.GroupDomain(set)
		if w.h.shown {
			name = profiles.ClusterDomain(set)
		}
		latent = append(latent, set)
		for n := 1; n <= len(pus); n++ {
			add(name, topotree.NewCPUSet(pus[:n]...))
		}
	}
	if !w.h.shown && w.h.clusters > 1 {
		x := topotree.Group(w.h.cores, 1, w.p.Machine.Tree.LevelOf(topotree.KindCore))
		w.p.Latent = append(w.p.Latent, profiles.Latent{Matrix: profiles.CacheMatrix, Sets: latent, Contrast: 2,
			Effect: 5, Group: x.String(), Text: "synthetic"})
	}
	for node := range w.h.nodes {
		pus := ofNode[node]
		for _, n := range countsUpTo(len(pus)) {
			add(profiles.NodeDomain(node), topotree.NewCPUSet(pus[:min(n, len(pus))]...))
		}
	}
}

// nodes adds the bandwidth between nodes, and that of pages on all of them.
func (w *probeWriter) nodes() {
	if w.h.nodes < 2 {
		return
	}
	m := profiles.Matrix{Name: profiles.NodeMatrix, Unit: "B/s", N: 15}
	all := w.p.Allowed()
	for i := range w.h.nodes {
		m.Items = append(m.Items, i)
		var row profiles.MatrixRow
		for j := range w.h.nodes {
			row = append(row, w.fig(w.h.read(w.h.ofNode(i).Intersect(all), []int{j}), "B/s").Median)
		}
		m.Rows = append(m.Rows, row)
	}
	w.p.Matrices = append(w.p.Matrices, m)
	var every []int
	for i := range w.h.nodes {
		every = append(every, i)
	}
	w.p.Sets = append(w.p.Sets, profiles.SetFigure{Name: profiles.Flows, Domain: "machine", CPUs: all,
		Flows: []profiles.Flow{{CPUs: all, Node: profiles.Interleaved}}, Figure: w.fig(w.h.read(all, every), "B/s")})
}

func (h *syntheticHost) ofNode(node int) topotree.CPUSet {
	var out []int
	for pu := range h.pus() {
		if h.node(pu) == node {
			out = append(out, pu)
		}
	}
	return topotree.NewCPUSet(out...)
}

func (w *probeWriter) waits() {
	usable := w.p.UsablePUs().Count()
	for _, n := range countsUpTo(usable) {
		if n > 1 {
			set := w.first(n)
			w.p.Sets = append(w.p.Sets, profiles.SetFigure{Name: profiles.Barrier, Domain: "machine", CPUs: set,
				Figure: w.fig(w.h.wait(set), "s")})
		}
	}
	for ranks := 2; ranks <= usable; ranks *= 2 {
		for _, bytes := range []int64{1 << 12, 1 << 16, 1 << 20, 1 << 24} {
			set := w.first(usable)
			w.p.Sets = append(w.p.Sets, profiles.SetFigure{Name: profiles.AllReduce, Domain: "machine", CPUs: set,
				Ranks: ranks, Bytes: bytes, Figure: w.fig(w.h.reduce(set, ranks, bytes), "s")})
		}
	}
}
