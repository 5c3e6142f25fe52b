package roofline

import (
	"cmp"
	"slices"
	"strings"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Answer is a rate of a Machine with its origin. The zero Answer means unknown.
type Answer struct {
	Value   float64
	Assumed bool   // derived from a figure that is quoted or assumed, or by a rule without measurements
	From    string // origin in a few words
}

// Known reports whether the rate is known.
func (a Answer) Known() bool { return a.From != "" }

// Machine returns rates of sets of PUs from a profile. A rate is the measurement of the same set if
// the profile has one; otherwise it is derived from the most similar recorded sets by the rule that
// each method states. A Machine only reads its profile and may be used concurrently.
type Machine struct {
	profile  *profiles.Profile
	core     map[int]int             // lowest PU of its core, by PU
	twins    map[int]topotree.CPUSet // preceding PUs of its core, by PU, except for first PUs
	cores    int                     // number of allowed cores
	class    map[int]int             // index in classes, by PU
	classes  []Class
	peaks    map[Path]*peaks
	reads    map[string]*curve // bandwidth by level, as a function of the number of PUs
	memory   []recorded        // bandwidth of sets of PUs from their nearest memory
	nodes    []domain
	clusters []domain // PUs that share a last-level cache
	groups   []domain // measured clusters
}

// recorded is a figure of one set of PUs.
type recorded struct {
	set    topotree.CPUSet
	value  float64
	figure profiles.Figure
}

// answer returns the figure as an Answer.
func (r recorded) answer() Answer {
	return Answer{Value: r.value, Assumed: !r.figure.Measured(), From: r.figure.Provenance() + " with these PUs"}
}

// Class is a worker kind: PUs of equal speed according to the system or a measurement. Classes are
// numbered from the fastest.
type Class struct {
	ID   int
	Name string // "" if all PUs belong to one class
}

// NewMachine returns the Machine of a profile that Check accepts, or of one without a topology, in
// which every PU counts as a core.
func NewMachine(p *profiles.Profile) *Machine {
	m := &Machine{profile: p, core: map[int]int{}, class: map[int]int{},
		twins: map[int]topotree.CPUSet{},
		peaks: map[Path]*peaks{}, reads: map[string]*curve{}}
	if p.Machine != nil {
		m.describe(p.Machine)
	}
	m.readCeilings()
	m.readPeaks()
	return m
}

// describe derives cores, classes and domains from the topology.
func (m *Machine) describe(t *topotree.Machine) {
	cores := map[int]bool{}
	for _, o := range t.Objects {
		if o.Kind == topotree.KindCore {
			var before topotree.CPUSet
			for pu := range o.CPUs.All() {
				m.core[pu] = o.CPUs.First()
				if !before.IsEmpty() {
					m.twins[pu] = before
				}
				before = before.Union(topotree.NewCPUSet(pu))
			}
		}
	}
	for pu := range t.Allowed.All() {
		cores[m.coreOf(pu)] = true
	}
	m.cores = len(cores)
	m.classify(t)
	for _, n := range t.Localities() {
		m.nodes = append(m.nodes, domain{profiles.NodeDomain(n.ID), n.ID, n.CPUs})
	}
	for _, kind := range []topotree.Kind{topotree.KindL4, topotree.KindL3} {
		for _, o := range t.Objects {
			if o.Kind == kind {
				m.clusters = append(m.clusters, domain{profiles.ClusterDomain(o.CPUs), -1, o.CPUs})
			}
		}
		if len(m.clusters) > 0 {
			break
		}
	}
	for _, l := range m.profile.Latent {
		if l.Known == "" { // the innermost clusters that the tree lacks
			for _, set := range l.Sets {
				m.groups = append(m.groups, domain{profiles.GroupDomain(set), -1, set})
			}
			break
		}
	}
}

// classify numbers the classes by core type and measured speed, the fastest first.
func (m *Machine) classify(t *topotree.Machine) {
	type key struct{ core, measured int }
	sets := map[key][]int{}
	var keys []key
	for pu := range t.Online.All() {
		k := key{
			slices.IndexFunc(t.CoreTypes, func(c topotree.CoreType) bool { return c.CPUs.Contains(pu) }),
			slices.IndexFunc(t.Measured, func(c topotree.MeasuredClass) bool { return c.CPUs.Contains(pu) }),
		}
		if k.measured < 0 {
			k.measured = len(t.Measured) // PUs in no class form the last one
		}
		if sets[k] == nil {
			keys = append(keys, k)
		}
		sets[k] = append(sets[k], pu)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(a.core-b.core, a.measured-b.measured) })
	for i, k := range keys {
		var names []string
		if k.core >= 0 {
			names = append(names, t.CoreTypes[k.core].Name)
		}
		if k.measured < len(t.Measured) {
			names = append(names, t.Measured[k.measured].Name)
		}
		m.classes = append(m.classes, Class{i, strings.Join(names, ", ")})
		for _, pu := range sets[k] {
			m.class[pu] = i
		}
	}
}

// Class returns the worker kind of a PU.
func (m *Machine) Class(pu int) Class {
	if len(m.classes) == 0 {
		return Class{}
	}
	return m.classes[m.class[pu]]
}

// Classes returns the worker kinds, fastest first; at least one.
func (m *Machine) Classes() []Class {
	if len(m.classes) == 0 {
		return []Class{{}}
	}
	return slices.Clone(m.classes)
}

// First returns the best n usable PUs, or all if there are fewer.
func (m *Machine) First(n int) topotree.CPUSet {
	if m.profile.Machine == nil {
		return topotree.CPURange(0, n-1)
	}
	return m.profile.FirstPUs(n)
}

// coreOf returns the lowest PU of a PU's core, which identifies the core.
func (m *Machine) coreOf(pu int) int {
	if c, ok := m.core[pu]; ok {
		return c
	}
	return pu
}

// coresOf returns the number of cores that a set uses.
func (m *Machine) coresOf(set topotree.CPUSet) int {
	n := set.Count()
	if len(m.twins) == 0 {
		return n
	}
	for pu := range set.All() {
		if first, ok := m.twins[pu]; ok && first.Intersects(set) {
			n--
		}
	}
	return n
}

// readCeilings collects the bandwidth figures of the profile.
func (m *Machine) readCeilings() {
	for _, c := range m.profile.Ceilings {
		if c.Kind != profiles.Bandwidth || c.Device != "" || c.Median <= 0 {
			continue
		}
		if m.reads[c.Level] == nil {
			m.reads[c.Level] = &curve{}
		}
		m.reads[c.Level].add(float64(c.PUs), c.Median)
		if c.Level == memoryLevel {
			m.memory = append(m.memory, named(c.CPUs, c.Figure)...)
		}
	}
	for _, f := range m.profile.Sets {
		if f.Name == profiles.Saturation {
			m.memory = append(m.memory, named(f.CPUs, f.Figure)...)
		}
	}
}

const memoryLevel = "memory"

// domain is a set of PUs that share a path to memory.
type domain struct {
	name string
	node int
	pus  topotree.CPUSet
}
