package roofline

import (
	"math"
	"slices"

	"sandwich/topotree"
)

// inner returns the domains inside a node that have separate paths to memory: measured clusters,
// else last-level caches if the node has several.
func (m *Machine) inner(d domain) []domain {
	for _, list := range [][]domain{m.groups, m.clusters} {
		var within []domain
		for _, c := range list {
			if c.pus.In(d.pus) && !c.pus.Equal(d.pus) {
				within = append(within, c)
			}
		}
		if len(within) > 1 {
			return within
		}
	}
	return nil
}

// demand returns the bandwidth that the inner domains of a node would reach if the node were no
// limit: the sum of their own curves. It is 0 if some inner domain has no curve.
func (m *Machine) demand(d domain, set topotree.CPUSet) float64 {
	inner := m.inner(d)
	if len(inner) == 0 {
		return 0
	}
	sum, left := 0.0, set
	for _, c := range inner {
		part := set.Intersect(c.pus)
		if part.IsEmpty() {
			continue
		}
		left = left.Minus(c.pus)
		v := m.reach(c, part, inner)
		if v <= 0 {
			return 0
		}
		sum += v
	}
	if !left.IsEmpty() {
		return 0
	}
	return sum
}

// reach returns the bandwidth of PUs of one inner domain: the figure of the set, else by the
// domain's curve, else the median of its peers' curves.
func (m *Machine) reach(c domain, part topotree.CPUSet, peers []domain) float64 {
	for _, r := range m.memory {
		if r.set.Equal(part) {
			return r.value
		}
	}
	want := m.look(c, part)
	if m.curved(c, part.Count()) {
		if a := m.alike(c, want); a.Known() {
			return a.Value
		}
	}
	var values []float64
	for _, p := range peers {
		if p.pus.Count() == c.pus.Count() && m.curved(p, part.Count()) {
			if a := m.alike(p, want); a.Known() {
				values = append(values, a.Value)
			}
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// curved reports whether a domain was measured with all its cores and with at most n PUs, so that
// its curve is known at n.
func (m *Machine) curved(d domain, n int) bool {
	return m.saturated(d) && slices.ContainsFunc(m.memory, func(r recorded) bool {
		return r.set.In(d.pus) && r.set.Count() <= n
	})
}

// byDemand corrects a bandwidth that depends on the number of PUs for their placement. Recorded
// sets of a node are mostly its first PUs, which fill one inner domain after another; the same
// number spread over the domains demands more of the node. The answer is scaled by the ratio of
// demands, up to the highest bandwidth recorded when the node was the limit.
func (m *Machine) byDemand(d domain, part topotree.CPUSet, a Answer) Answer {
	want := m.demand(d, part)
	if want <= 0 || !a.Known() {
		return a
	}
	recorded := m.alikeOf(d, m.look(d, part), func(r recorded) float64 { return m.demand(d, r.set) })
	if !recorded.Known() || recorded.Value <= 0 {
		return a
	}
	value := math.Min(a.Value*want/recorded.Value, want)
	top, bound := 0.0, false
	for _, r := range m.memory {
		if !r.set.In(d.pus) || r.value <= 0 {
			continue
		}
		top = math.Max(top, r.value)
		if asked := m.demand(d, r.set); asked > 0 && r.value < nodeBound*asked {
			bound = true
		}
	}
	if bound {
		value = math.Min(value, top)
	}
	if math.Abs(value-a.Value) > 1e-9*a.Value {
		a.Value, a.From = value, "by the bandwidth of its clusters"
	}
	return a
}

// nodeBound is the fraction of the demand of its inner domains below which a node is assumed to be
// the limit.
const nodeBound = 0.9
