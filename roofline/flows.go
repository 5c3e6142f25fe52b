package roofline

import (
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// remote is what a set reads from one node: the PUs of each node reach what the matrix of nodes has
// for the pair, or less if they read less from their own memory; together no more than the node
// gives to anybody. Where the matrix was not measured remote reads are taken as local ones.
func (m *Machine) remote(set topotree.CPUSet, node int) Answer {
	if m.nodeIndex(node) < 0 && !slices.Contains(m.items(), node) {
		return Answer{}
	}
	to, matrix := slices.Index(m.items(), node), m.profile.Matrix(profiles.NodeMatrix)
	out := Answer{From: "by the bandwidth between nodes"}
	left := set
	for _, d := range m.nodes {
		part := set.Intersect(d.pus)
		if part.IsEmpty() {
			continue
		}
		left = left.Minus(d.pus)
		a := m.local(part)
		if !a.Known() {
			return Answer{}
		}
		from := slices.Index(m.items(), d.node)
		switch {
		case d.node == node:
		case from >= 0 && to >= 0 && matrix.Rows[from][to] > 0:
			a.Value, a.Assumed = math.Min(a.Value, matrix.Rows[from][to]), a.Assumed || matrix.N == 0
		default:
			a.Assumed = true
		}
		out.Value, out.Assumed = out.Value+a.Value, out.Assumed || a.Assumed
	}
	if !left.IsEmpty() {
		return Answer{}
	}
	if gives := m.gives(node); gives > 0 {
		out.Value = math.Min(out.Value, gives)
	}
	return out
}

// items are the nodes of the matrix of nodes.
func (m *Machine) items() []int {
	if matrix := m.profile.Matrix(profiles.NodeMatrix); matrix != nil {
		return matrix.Items
	}
	return nil
}

func (m *Machine) nodeIndex(node int) int {
	return slices.IndexFunc(m.nodes, func(d domain) bool { return d.node == node })
}

// gives is the most that anybody was seen to read from a node; 0 where nothing is known.
func (m *Machine) gives(node int) float64 {
	most := 0.0
	if to := slices.Index(m.items(), node); to >= 0 {
		for _, row := range m.profile.Matrix(profiles.NodeMatrix).Rows {
			most = math.Max(most, row[to])
		}
	}
	if i := m.nodeIndex(node); i >= 0 {
		most = math.Max(most, m.saturation(m.nodes[i]).Value)
	}
	return most
}

// Flows is what several flows read at once, all together, in B/s. It is the figure of these very
// flows where there is one; else the sum of each alone, no more from any node than it gives, less
// what the recorded combination among them that loses most was seen to lose: links are shared by
// flows of unlike ends, and only a measurement tells which.
func (m *Machine) Flows(flows ...profiles.Flow) Answer {
	if r := m.flow(flows); r != nil {
		return r.answer()
	}
	sum, ok := m.alone(flows)
	if !ok {
		return Answer{}
	}
	loss := 0.0
	for _, f := range m.profile.Sets {
		if f.Name != profiles.Flows || !contains(flows, f.Flows) {
			continue
		}
		if part, ok := m.alone(f.Flows); ok {
			loss = math.Max(loss, part.Value-f.Median)
			sum.Assumed = sum.Assumed || !f.Measured()
		}
	}
	return Answer{math.Max(0, sum.Value-loss), sum.Assumed, "the sum of its flows, less what some were seen to lose"}
}

// alone is the sum of flows that share nothing but the node they end at.
func (m *Machine) alone(flows []profiles.Flow) (Answer, bool) {
	ends, out := map[int]float64{}, Answer{}
	for _, f := range flows {
		a := m.Bandwidth(f.CPUs, f.Node)
		if !a.Known() {
			return Answer{}, false
		}
		ends[f.Node] += a.Value
		out.Assumed = out.Assumed || a.Assumed
	}
	var values []float64
	for node, value := range ends {
		if gives := m.gives(node); gives > 0 {
			value = math.Min(value, gives)
		}
		values = append(values, value)
	}
	for _, v := range slices.Sorted(slices.Values(values)) {
		out.Value += v
	}
	return out, len(flows) > 0
}

// flow is the recorded figure of exactly these flows; nil where there is none.
func (m *Machine) flow(flows []profiles.Flow) *recorded {
	for _, f := range m.profile.Sets {
		if f.Name == profiles.Flows && len(f.Flows) == len(flows) && contains(flows, f.Flows) {
			return &recorded{f.CPUs, f.Median, f.Figure}
		}
	}
	return nil
}

// contains tells whether each of some flows is among others.
func contains(flows, some []profiles.Flow) bool {
	for _, a := range some {
		if !slices.ContainsFunc(flows, func(b profiles.Flow) bool { return a.Node == b.Node && a.CPUs.Equal(b.CPUs) }) {
			return false
		}
	}
	return true
}
