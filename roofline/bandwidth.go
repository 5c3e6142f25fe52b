package roofline

import (
	"fmt"
	"math"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Places of what is read, beside the number of a memory node.
const (
	Interleaved = profiles.Interleaved // the pages lie on all nodes in turn
	Local       = -2                   // each PU reads the memory nearest to it
)

// domain is PUs that share a way to memory.
type domain struct {
	name string
	node int
	pus  topotree.CPUSet
}

// Bandwidth is what a set of PUs reads together, in B/s, from a memory node, from the nearest one
// (Local), or from pages that lie on all nodes in turn (Interleaved). It is never above the sum of
// what the domains of the set (nodes, last-level caches, found groups) were seen to reach. More PUs
// may read less: they contend.
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

// local is the figure of the set itself, else the sum over its memory nodes where saturation was
// recorded, else by the number of PUs.
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

// byNodes adds up the nodes of a set; unknown where nothing was recorded within any one of them. A
// node without a figure is taken for the slowest of the others.
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
		return Answer{} // PUs of no node
	}
	return out
}

// within is what PUs of one domain read: the figure of the set itself, else by what it looks like.
func (m *Machine) within(d domain, part topotree.CPUSet) Answer {
	for _, r := range m.memory {
		if r.set.Equal(part) {
			return r.answer()
		}
	}
	return m.byDemand(d, part, m.alike(d, m.look(d, part)))
}

// look is what of a set decides how fast it reads: how many PUs, and how they are spread over
// last-level caches and cores.
type look struct {
	pus           int
	caches, perPU float64
}

func (m *Machine) look(d domain, set topotree.CPUSet) look {
	n := set.Count()
	return look{n, m.spread(d, set), float64(m.coresOf(set)) / float64(n)}
}

// alike is linear in the number of PUs between recorded sets of a domain, of each size the one that
// is spread most alike. It is unknown beyond the largest set, unless that is all of the domain.
func (m *Machine) alike(d domain, want look) Answer {
	return m.alikeOf(d, want, func(r recorded) float64 { return r.value })
}

// alikeOf is alike of another value of the recorded sets.
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
	return Answer{c.at(float64(want.pus)), assumed, "by PUs at work between recorded sets of " + d.name}
}

// likeOthers is the least that such PUs of another node read.
func (m *Machine) likeOthers(d domain, part topotree.CPUSet) Answer {
	var least Answer
	for _, other := range m.nodes {
		want := m.look(d, part)
		want.pus = min(want.pus, other.pus.Count())
		if a := m.alike(other, want); a.Known() && (!least.Known() || a.Value < least.Value) {
			least = a
		}
	}
	if least.Known() {
		least.Assumed, least.From = true, "like the slowest of the nodes that were measured"
	}
	return least
}

// spread is the share of the last-level caches of a domain that a set could touch and does.
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

// byCount is a ceiling over the number of PUs at work.
func (m *Machine) byCount(level string, pus int) Answer {
	c := m.reads[level]
	if c == nil {
		return Answer{}
	}
	a := Answer{Value: c.at(float64(pus)), From: "by the number of PUs at work"}
	for _, f := range m.profile.Ceilings {
		if f.Kind == profiles.Bandwidth && f.Device == "" && f.Level == level && !f.Measured() {
			a.Assumed = true
		}
	}
	if float64(pus) > c.last() {
		a.Assumed, a.From = true, fmt.Sprintf("flat beyond the %g PUs that a figure is of", c.last())
	}
	return a
}

// Read is what a set of PUs reads from a level of the caches (l1, l2, l3), each PU its own data, or
// from memory.
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

// Saturation is the most that PUs of a domain, or parts of it, were seen to read together from the
// memory nearest to them. The domain is named as in a profile: node N, cluster of PU P, group of PU
// P.
func (m *Machine) Saturation(name string) Answer {
	for _, d := range slices.Concat(m.nodes, m.clusters, m.groups) {
		if d.name == name {
			return m.saturation(d)
		}
	}
	return Answer{}
}

func (m *Machine) saturation(d domain) Answer {
	var most Answer
	for _, r := range m.memory {
		if r.set.In(d.pus) && r.value > most.Value {
			most = Answer{r.value, !r.figure.Measured(), r.figure.Provenance() + " with PUs " + r.set.Brief()}
		}
	}
	return most
}

// capped bounds an answer by the sum over the domains of a set, for each way of dividing it into
// domains of which all were saturated: only a figure of all PUs of a domain says what it cannot
// exceed.
func (m *Machine) capped(set topotree.CPUSet, a Answer) Answer {
	for _, parts := range [][]domain{m.nodes, m.clusters, m.groups} {
		sum, assumed, left := 0.0, false, set
		for _, d := range parts {
			if !d.pus.Intersects(set) {
				continue
			}
			top := m.saturation(d)
			if !m.saturated(d) {
				left = set // nothing bounds this part
				break
			}
			sum, assumed, left = sum+top.Value, assumed || top.Assumed, left.Minus(d.pus)
		}
		if left.IsEmpty() && sum < a.Value {
			a = Answer{sum, assumed, "the sum of what its domains reach"}
		}
	}
	return a
}

// saturated tells whether a figure is of every core of a domain.
func (m *Machine) saturated(d domain) bool {
	cores := m.coresOf(d.pus.Intersect(m.profile.Allowed()))
	for _, r := range m.memory {
		if r.set.In(d.pus) && m.coresOf(r.set) == cores {
			return true
		}
	}
	return false
}
