package roofline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
)

// truth is a machine of the test's own, whose figures a profile holds in part.
type truth struct {
	nodes, clusters, cores, smt int // each in one of the former
	speed                       []float64
	link                        []float64 // B/s of each node's memory
	names                       []int     // PU numbers by position
}

func (h *truth) pus() int { return h.nodes * h.clusters * h.cores * h.smt }

func randomTruth(r *rand.Rand) *truth {
	h := &truth{nodes: 1 + r.IntN(3), clusters: 1 + r.IntN(3), cores: 1 + r.IntN(4), smt: 1 + r.IntN(2)}
	for range h.pus() / h.smt {
		h.speed = append(h.speed, 100)
	}
	for range h.nodes {
		h.link = append(h.link, 20+20*r.Float64())
	}
	for i := range h.pus() {
		h.names = append(h.names, i)
	}
	return h
}

// set gives positions their PU numbers.
func (h *truth) set(positions []int) topotree.CPUSet {
	var out []int
	for _, i := range positions {
		out = append(out, h.names[i])
	}
	return cpus(out...)
}

func (h *truth) peak(positions []int) float64 {
	sum, seen := 0.0, map[int]bool{}
	for _, i := range positions {
		if core := i / h.smt; seen[core] {
			sum += 0.1 * h.speed[core]
		} else {
			seen[core] = true
			sum += h.speed[core]
		}
	}
	return sum
}

func (h *truth) read(positions []int) float64 {
	byNode := make([]float64, h.nodes)
	for _, i := range positions {
		byNode[i/(h.pus()/h.nodes)] += 6
	}
	sum := 0.0
	for node, v := range byNode {
		sum += math.Min(v, h.link[node])
	}
	return sum
}

func upTo(from, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i
	}
	return out
}

// profile writes down what a full probe would.
func (h *truth) profile(t testing.TB, noise func() float64) *profiles.Profile {
	t.Helper()
	n := h.pus()
	d := topotree.Description{Source: "test", Arch: "x86_64", Online: h.set(upTo(0, n)), Allowed: h.set(upTo(0, n))}
	cut := func(size int) (sets []topotree.CPUSet) {
		for at := 0; at < n; at += size {
			sets = append(sets, h.set(upTo(at, size)))
		}
		return sets
	}
	d.Levels = []topotree.LevelData{{Kind: topotree.KindL3, Bytes: 1 << 20, Sets: cut(h.cores * h.smt)},
		{Kind: topotree.KindCore, Sets: cut(h.smt)}}
	for i, set := range cut(n / h.nodes) {
		d.Memory = append(d.Memory, topotree.MemoryNode{ID: i, CPUs: set, Bytes: 1 << 30})
	}
	bySpeed := map[float64][]int{}
	for i := range n {
		bySpeed[h.speed[i/h.smt]] = append(bySpeed[h.speed[i/h.smt]], i)
	}
	var speeds []float64
	for v := range bySpeed {
		speeds = append(speeds, v)
	}
	slices.Sort(speeds)
	slices.Reverse(speeds)
	if len(speeds) > 1 {
		for _, v := range speeds {
			d.Measured = append(d.Measured, topotree.MeasuredClass{Name: fmt.Sprint(v), CPUs: h.set(bySpeed[v])})
		}
	}
	machine, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	p := profiles.New(machine, profiles.Identity{})
	fig := func(v float64) profiles.Figure { return profiles.Figure{Median: v * noise(), N: 9} }
	for k := 1; k <= n; k++ {
		if k > 8 && k%3 > 0 && k != n/h.smt && k != n {
			continue
		}
		var first []int // one PU of each core before the second of any
		for i := range n {
			if pos := i%(n/h.smt)*h.smt + i/(n/h.smt); len(first) < k {
				first = append(first, pos)
			}
		}
		p.Ceilings = append(p.Ceilings,
			profiles.Ceiling{Kind: profiles.Compute, ISA: "avx2", Type: "f32", PUs: k, CPUs: h.set(first),
				Figure: fig(h.peak(first))},
			profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: k, CPUs: h.set(first),
				Figure: fig(h.read(first))})
	}
	for _, v := range speeds {
		one := bySpeed[v][:1]
		p.Sets = append(p.Sets, profiles.SetFigure{Name: profiles.Peak, Domain: "class", ISA: "avx2", Type: "f32",
			CPUs: h.set(one), Figure: fig(h.peak(one))})
	}
	for node := range h.nodes {
		for k := 1; k <= n/h.nodes; k++ {
			part := upTo(node*n/h.nodes, k)
			p.Sets = append(p.Sets, profiles.SetFigure{Name: profiles.Saturation, Domain: profiles.NodeDomain(node),
				CPUs: h.set(part), Figure: fig(h.read(part))})
		}
	}
	whole := upTo(0, n)
	p.Sets = append(p.Sets, profiles.SetFigure{Name: profiles.Barrier, Domain: "machine", CPUs: h.set(whole),
		Figure: fig(1e-7 * float64(n))},
		profiles.SetFigure{Name: profiles.Barrier, Domain: "pair", CPUs: h.set(whole[:min(2, n)]), Figure: fig(1e-7)})
	return p
}

func exact() float64 { return 1 }
