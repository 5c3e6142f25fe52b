package roofline

import (
	"fmt"
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Memory that is read, in addition to the indexes of memory nodes.
const (
	Interleaved = profiles.Interleaved // pages that are interleaved over all nodes
	Local       = -2                   // the nearest memory of each PU
)

// Bandwidth returns the total read bandwidth of a set of PUs in B/s, from a memory node, from the
// nearest memory (Local), or from interleaved pages (Interleaved). It is at most the sum of the
// highest recorded figures of the set's domains: nodes, last-level caches and measured clusters.
// More PUs may read less, since they contend.
func (m *Machine) Bandwidth(set topotree.CPUSet, node int) Answer {
	if set.IsEmpty() {
		return Answer{}
	}
	switch node {
	case Local:
		return m.local(set)
	case Interleaved:
		return m.interleaved(set)
	}
	return m.remote(set, node)
}

// local returns the figure of the set, else the sum over its memory nodes if saturation was
// recorded, else a figure by the number of PUs.
func (m *Machine) local(set topotree.CPUSet) Answer {
	for _, r := range m.memory {
		if r.set.Equal(set) {
			return m.capped(set, r.answer())
		}
	}
	if a := m.byNodes(set); a.Known() {
		return m.capped(set, a)
	}
	return m.capped(set, m.byCount(memoryLevel, set.Count()))
}

// byNodes returns the sum over the nodes of a set. It is unknown if no node has a figure; a node
// without one counts as the slowest of the others.
func (m *Machine) byNodes(set topotree.CPUSet) Answer {
	if len(m.memory) == 0 {
		return Answer{}
	}
	var out Answer
	left := set
	for _, d := range m.nodes {
		part := set.Intersect(d.pus)
		if part.IsEmpty() {
			continue
		}
		left = left.Minus(d.pus)
		a := m.within(d, part)
		if !a.Known() {
			a = m.likeOthers(d, part)
		}
		if !a.Known() {
			return Answer{}
		}
		out = Answer{out.Value + a.Value, out.Assumed || a.Assumed, a.From}
	}
	if !left.IsEmpty() {
		return Answer{} // some PUs belong to no node
	}
	return out
}

// within returns the bandwidth of PUs of one domain: the figure of the set, else that of similar
// sets.
func (m *Machine) within(d domain, part topotree.CPUSet) Answer {
	for _, r := range m.memory {
		if r.set.Equal(part) {
			return r.answer()
		}
	}
	return m.byDemand(d, part, m.alike(d, m.look(d, part)))
}

// look holds the properties of a set that determine its bandwidth: the number of PUs, and their
// spread over last-level caches and cores.
type look struct {
	pus           int
	caches, perPU float64
}

func (m *Machine) look(d domain, set topotree.CPUSet) look {
	n := set.Count()
	return look{n, m.spread(d, set), float64(m.coresOf(set)) / float64(n)}
}

// alike interpolates linearly by the number of PUs between recorded sets of a domain, using for
// each size the one with the most similar spread. It is unknown beyond the largest set unless that
// set covers the domain.
func (m *Machine) alike(d domain, want look) Answer {
	return m.alikeOf(d, want, func(r recorded) float64 { return r.value })
}

// alikeOf is alike for another value of the recorded sets.
func (m *Machine) alikeOf(d domain, want look, of func(recorded) float64) Answer {
	far := func(r recorded) float64 {
		have := m.look(d, r.set)
		return math.Abs(have.caches-want.caches) + math.Abs(have.perPU-want.perPU)
	}
	bySize := map[int]recorded{}
	for _, r := range m.memory {
		if !r.set.In(d.pus) {
			continue
		}
		old, ok := bySize[r.set.Count()]
		if !ok || far(r) < far(old)-1e-9 || far(r) < far(old)+1e-9 && r.value < old.value {
			bySize[r.set.Count()] = r
		}
	}
	var c curve
	assumed := false
	for size, r := range bySize {
		c.add(float64(size), of(r))
		assumed = assumed || !r.figure.Measured()
	}
	if !c.known() || float64(want.pus) > c.last() && !m.saturated(d) {
		return Answer{}
	}
	return Answer{c.at(float64(want.pus)), assumed, "by active PUs between recorded sets of " + d.name}
}

// likeOthers returns the lowest bandwidth of similar PUs of another node.
func (m *Machine) likeOthers(d domain, part topotree.CPUSet) Answer {
	var smallest Answer
	for _, other := range m.nodes {
		want := m.look(d, part)
		want.pus = min(want.pus, other.pus.Count())
		if a := m.alike(other, want); a.Known() && (!smallest.Known() || a.Value < smallest.Value) {
			smallest = a
		}
	}
	if smallest.Known() {
		smallest.Assumed, smallest.From = true, "as the slowest measured node"
	}
	return smallest
}

// spread returns the fraction of a domain's last-level caches that the set uses, of those that it
// could use.
func (m *Machine) spread(d domain, set topotree.CPUSet) float64 {
	all, touched := 0, 0
	for _, c := range m.clusters {
		if c.pus.In(d.pus) {
			all++
			if c.pus.Intersects(set) {
				touched++
			}
		}
	}
	if all < 2 {
		return 1
	}
	return float64(touched) / float64(min(all, set.Count()))
}

// byCount returns a ceiling by the number of active PUs.
func (m *Machine) byCount(level string, pus int) Answer {
	c := m.reads[level]
	if c == nil {
		return Answer{}
	}
	a := Answer{Value: c.at(float64(pus)), From: "by the number of active PUs"}
	for _, f := range m.profile.Ceilings {
		if f.Kind == profiles.Bandwidth && f.Device == "" && f.Level == level && !f.Measured() {
			a.Assumed = true
		}
	}
	if float64(pus) > c.last() {
		a.Assumed, a.From = true, fmt.Sprintf("constant beyond the largest measured number of PUs, %g", c.last())
	}
	return a
}

// Read returns the read bandwidth of a set of PUs in B/s from a cache level (l1, l2, l3), each PU
// its own data, or from memory.
func (m *Machine) Read(set topotree.CPUSet, level string) Answer {
	if level == memoryLevel {
		return m.Bandwidth(set, Local)
	}
	for _, c := range m.profile.Ceilings {
		if c.Kind == profiles.Bandwidth && c.Device == "" && c.Level == level && c.CPUs.Equal(set) && !set.IsEmpty() {
			return recorded{c.CPUs, c.Median, c.Figure}.answer()
		}
	}
	return m.byCount(level, set.Count())
}

// Saturation returns the highest recorded bandwidth of PUs of a domain from their nearest memory.
// The name is that of a profile: node N, cluster of PU P, group of PU P.
func (m *Machine) Saturation(name string) Answer {
	for _, d := range slices.Concat(m.nodes, m.clusters, m.groups) {
		if d.name == name {
			return m.saturation(d)
		}
	}
	return Answer{}
}

func (m *Machine) saturation(d domain) Answer {
	var largest Answer
	for _, r := range m.memory {
		if r.set.In(d.pus) && r.value > largest.Value {
			largest = Answer{r.value, !r.figure.Measured(), r.figure.Provenance() + " with PUs " + r.set.Brief()}
		}
	}
	return largest
}

// capped limits an answer to the sum over the domains of a set, for each division into domains that
// were measured with all cores.
func (m *Machine) capped(set topotree.CPUSet, a Answer) Answer {
	for _, parts := range [][]domain{m.nodes, m.clusters, m.groups} {
		sum, assumed, left := 0.0, false, set
		for _, d := range parts {
			if !d.pus.Intersects(set) {
				continue
			}
			top := m.saturation(d)
			if !m.saturated(d) {
				left = set // no limit is known
				break
			}
			sum, assumed, left = sum+top.Value, assumed || top.Assumed, left.Minus(d.pus)
		}
		if left.IsEmpty() && sum < a.Value {
			a = Answer{sum, assumed, "the sum of the limits of its domains"}
		}
	}
	return a
}

// saturated reports whether a domain was measured with all its cores.
func (m *Machine) saturated(d domain) bool {
	cores := m.coresOf(d.pus.Intersect(m.profile.Allowed()))
	for _, r := range m.memory {
		if r.set.In(d.pus) && m.coresOf(r.set) == cores {
			return true
		}
	}
	return false
}
