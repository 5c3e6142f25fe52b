package roofline

import (
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Spread returns the bandwidth of a set of PUs in B/s from pages that are interleaved over some
// nodes: the recorded figure of such a flow, else an estimate. In the estimate the PUs of a node
// read the pages one after another (the harmonic mean over the nodes), the rates of all nodes' PUs
// add up, and no node exceeds its recorded maximum.
func (m *Machine) Spread(set topotree.CPUSet, nodes []int) Answer {
	if len(nodes) == 1 {
		return m.Bandwidth(set, nodes[0])
	}
	everywhere := len(nodes) == len(m.nodes)
	if everywhere {
		if r := m.flow([]profiles.Flow{{CPUs: set, Node: Interleaved}}); r != nil {
			return r.answer()
		}
	}
	a := m.harmonic(set, nodes)
	if !everywhere || !a.Known() {
		return a
	}
	around := m.flowAround(set)
	if around == nil {
		return a
	}
	if whole := m.harmonic(around.set, nodes); whole.Value > 0 {
		a.Value *= around.value / whole.Value
		a.From = "by the harmonic mean, scaled to the measured PUs"
	}
	if near := m.local(around.set); near.Value > 0 { // fewer PUs lose at most the same fraction to links
		a.Value = math.Max(a.Value, m.local(set).Value*math.Min(1, around.value/near.Value))
	}
	return a
}

// harmonic is the estimate of Spread.
func (m *Machine) harmonic(set topotree.CPUSet, nodes []int) Answer {
	out := Answer{Assumed: true, From: "the harmonic mean over the nodes"}
	left := set
	for _, d := range m.nodes {
		part := set.Intersect(d.pus)
		if part.IsEmpty() {
			continue
		}
		left = left.Minus(d.pus)
		slowness := 0.0
		for _, node := range nodes {
			a := m.remote(part, node)
			if a.Value <= 0 {
				return Answer{}
			}
			slowness += 1 / a.Value
		}
		out.Value += float64(len(nodes)) / slowness
	}
	if !left.IsEmpty() || out.Value <= 0 {
		return Answer{}
	}
	if near := m.local(set); near.Known() {
		out.Value = math.Min(out.Value, near.Value)
	}
	for _, node := range nodes {
		if gives := m.gives(node); gives > 0 {
			out.Value = math.Min(out.Value, float64(len(nodes))*gives)
		}
	}
	return out
}

// flowAround returns the recorded interleaved flow of the smallest superset, or nil.
func (m *Machine) flowAround(set topotree.CPUSet) *recorded {
	var best *recorded
	for _, f := range m.profile.Sets {
		if f.Name != profiles.Flows || len(f.Flows) != 1 || f.Flows[0].Node != Interleaved || !set.In(f.CPUs) {
			continue
		}
		if best == nil || f.CPUs.Count() < best.set.Count() {
			best = &recorded{f.CPUs, f.Median, f.Figure}
		}
	}
	return best
}

// interleaved is Spread over all nodes.
func (m *Machine) interleaved(set topotree.CPUSet) Answer {
	if len(m.nodes) == 0 {
		return m.local(set)
	}
	var all []int
	for _, d := range m.nodes {
		all = append(all, d.node)
	}
	slices.Sort(all)
	return m.Spread(set, all)
}
