package roofline

import (
	"math"
	"slices"

	"sandwich/topotree"
)

// inner are the domains inside a node that have ways to memory of their own: groups that a
// measurement found, else last-level caches where the node has several.
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

// demand is what the inner domains of a node would read if the node set no bound: the sum of their
// own curves at as many PUs as the set has in each, past the knee too. It is 0 where none of them
// has a curve.
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

// reach is what PUs of one inner domain read: the figure of the set, else by the domain's curve,
// else by those of its peers, of which the middle one.
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

// curved tells whether a domain was measured with all its cores and with no more PUs than n:
// between such figures its curve is known, below the least one only that there is one.
func (m *Machine) curved(d domain, n int) bool {
	return m.saturated(d) && slices.ContainsFunc(m.memory, func(r recorded) bool {
		return r.set.In(d.pus) && r.set.Count() <= n
	})
}

// byDemand corrects a figure that goes by the number of PUs for where they are. The recorded sets
// of a node are mostly its first PUs, which fill one inner domain after the other: the same number,
// one short in each domain, asks more of the node where domains contend inside. It scales by what
// the inner domains of the wanted set reach over those of the recorded sets, up to what the node
// was seen to give wherever it, and not its inner domains, was the bound.
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
		a.Value, a.From = value, "by what its clusters reach with so many PUs each"
	}
	return a
}

// nodeBound is the share of what its inner domains ask for below which a node is the bound itself,
// and not the noise of their figures.
const nodeBound = 0.9
