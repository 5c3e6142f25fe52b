package roofline

import (
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// remote returns the bandwidth of a set from one node. The PUs of each node reach the value of the
// node matrix for the pair, or their local bandwidth if that is lower; all together at most the
// highest rate recorded for the node. If the matrix was not measured, remote reads are assumed as
// fast as local ones.
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

// items returns the nodes of the node matrix.
func (m *Machine) items() []int {
	if matrix := m.profile.Matrix(profiles.NodeMatrix); matrix != nil {
		return matrix.Items
	}
	return nil
}

func (m *Machine) nodeIndex(node int) int {
	return slices.IndexFunc(m.nodes, func(d domain) bool { return d.node == node })
}

// gives returns the highest bandwidth that was recorded for reads from a node, 0 if unknown.
func (m *Machine) gives(node int) float64 {
	largest := 0.0
	if to := slices.Index(m.items(), node); to >= 0 {
		for _, row := range m.profile.Matrix(profiles.NodeMatrix).Rows {
			largest = math.Max(largest, row[to])
		}
	}
	if i := m.nodeIndex(node); i >= 0 {
		largest = math.Max(largest, m.saturation(m.nodes[i]).Value)
	}
	return largest
}

// Flows returns the total bandwidth of concurrent flows in B/s. If it was not recorded, it is the
// sum of the single flows, limited by the rate of each node, less the largest loss of a recorded
// combination among them, since flows between other nodes may share links.
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
	return Answer{math.Max(0, sum.Value-loss), sum.Assumed, "the sum of its flows, less the recorded loss of some " +
		"of them"}
}

// alone returns the sum of flows that share nothing but their source node.
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

// flow returns the recorded figure of exactly these flows, or nil.
func (m *Machine) flow(flows []profiles.Flow) *recorded {
	for _, f := range m.profile.Sets {
		if f.Name == profiles.Flows && len(f.Flows) == len(flows) && contains(flows, f.Flows) {
			return &recorded{f.CPUs, f.Median, f.Figure}
		}
	}
	return nil
}

// contains reports whether all flows of some are in flows.
func contains(flows, some []profiles.Flow) bool {
	for _, a := range some {
		if !slices.ContainsFunc(flows, func(b profiles.Flow) bool { return a.Node == b.Node && a.CPUs.Equal(b.CPUs) }) {
			return false
		}
	}
	return true
}
