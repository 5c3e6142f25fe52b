package roofline

import (
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Spread is what a set of PUs reads together from pages that lie on some nodes in turn, in B/s: the
// figure of such a flow where it was recorded, else by a rule. The PUs of a node take the pages one
// after the other, those that are far away longer (the harmonic mean over the nodes): a core has so
// many line-fill buffers, and keeps them busy longer. All nodes' PUs add up, and no node gives more
// than it was seen to.
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
	a := m.inTurn(set, nodes)
	if !everywhere || !a.Known() {
		return a
	}
	around := m.flowAround(set)
	if around == nil {
		return a
	}
	if whole := m.inTurn(around.set, nodes); whole.Value > 0 {
		a.Value *= around.value / whole.Value
		a.From = "by the rule, as far off as it is for the PUs that were measured"
	}
	if near := m.local(around.set); near.Value > 0 { // fewer PUs lose no more to the links than all do
		a.Value = math.Max(a.Value, m.local(set).Value*math.Min(1, around.value/near.Value))
	}
	return a
}

// inTurn is the rule of Spread.
func (m *Machine) inTurn(set topotree.CPUSet, nodes []int) Answer {
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

// flowAround is the recorded interleaved flow of the smallest set around a set; nil where there is
// none.
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
