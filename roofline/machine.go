package roofline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Answer is what a Machine says, and how far it can be trusted. The zero Answer says that nothing
// is known.
type Answer struct {
	Value   float64
	Assumed bool   // it rests on a figure that is quoted or assumed, or on a rule where nothing was measured
	From    string // in a few words where it comes from
}

// Known tells whether there is an answer.
func (a Answer) Known() bool { return a.From != "" }

// Machine says what a set of PUs can do. Each answer is a measurement where the profile has one of
// that very set; else it comes from the nearest recorded sets, by the rule that the method states.
// It only reads the profile that it was made of, and may be asked by several goroutines at once.
type Machine struct {
	profile  *profiles.Profile
	core     map[int]int             // by PU the lowest PU of its core
	twins    map[int]topotree.CPUSet // by PU that is not the first of its core: the PUs before it
	cores    int                     // that are allowed
	class    map[int]int             // by PU
	classes  []Class
	peaks    map[Path]*peaks
	reads    map[string]*curve // by level, over the number of PUs
	memory   []recorded        // sets of PUs that read the memory nearest to them
	nodes    []domain
	clusters []domain // of PUs that share a last-level cache
	groups   []domain // of PUs that a measurement found to belong together
}

// recorded is a figure of one set of PUs.
type recorded struct {
	set    topotree.CPUSet
	value  float64
	figure profiles.Figure
}

// answer is the figure itself.
func (r recorded) answer() Answer {
	return Answer{Value: r.value, Assumed: !r.figure.Measured(), From: r.figure.Provenance() + " with these PUs"}
}

// Class is a kind of worker: PUs that the system or a measurement says to be of one speed. Classes
// are numbered from the fastest.
type Class struct {
	ID   int
	Name string // "" where all PUs are of one class
}

// NewMachine reads a profile. It takes any profile that Check accepts, and one without a
// description of the machine: there every PU is a core of its own.
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

// describe takes cores, classes and domains from the description of the machine.
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
		if l.Known == "" { // the innermost that the tree does not show
			for _, set := range l.Sets {
				m.groups = append(m.groups, domain{profiles.GroupDomain(set), -1, set})
			}
			break
		}
	}
}

// classify numbers the classes by core type and measured speed, fastest first.
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

// Class is the kind of worker that a PU is.
func (m *Machine) Class(pu int) Class {
	if len(m.classes) == 0 {
		return Class{}
	}
	return m.classes[m.class[pu]]
}

// Classes lists the kinds of workers, fastest first; one at least.
func (m *Machine) Classes() []Class {
	if len(m.classes) == 0 {
		return []Class{{}}
	}
	return slices.Clone(m.classes)
}

// First are the n PUs that are put to work first, or as many as may be used.
func (m *Machine) First(n int) topotree.CPUSet {
	if m.profile.Machine == nil {
		return topotree.CPURange(0, n-1)
	}
	return topotree.NewCPUSet(m.profile.FirstPUs(n)...)
}

// coreOf names a PU's core by the lowest of its PUs.
func (m *Machine) coreOf(pu int) int {
	if c, ok := m.core[pu]; ok {
		return c
	}
	return pu
}

// coresOf counts the cores that a set touches.
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

// readCeilings sorts out the ceilings and the figures of sets that are of reading.
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

// Ceiling is the ceiling of a set of PUs on one path: the memory bandwidth that they share, their
// vector units first, by class, and the profile's devices (sme, gpu, npu) behind them; a mixed
// ceiling says what all reach together. It fails when the profile lacks the memory bandwidth or the
// peak, naming what to do.
func (m *Machine) Ceiling(set topotree.CPUSet, path Path) (Ceiling, error) {
	r, err := m.coreCeiling(set, path)
	if err != nil {
		return r, err
	}
	r.Targets[0].Parts = m.parts(set, path)
	together := map[int]float64{} // by the number of units at once
	for _, c := range m.profile.Ceilings {
		switch units := c.Units(); {
		case c.Kind != profiles.Compute || c.Device == "" || c.Type != path.Type:
		case len(units) > 1:
			together[len(units)] = max(together[len(units)], c.Median)
		default:
			r.Targets = append(r.Targets, Target{Name: c.Name(), Peak: c.Median, Units: c.PUs,
				Read: m.deviceReads(c.Device)})
		}
	}
	r.Mixed = together[len(r.Targets)] // of fewer units it says nothing about all
	return r, nil
}

// deviceReads is what a device reads of the memory of the host; 0 where nobody says.
func (m *Machine) deviceReads(device string) (most float64) {
	for _, c := range m.profile.Ceilings {
		if c.Kind == profiles.Bandwidth && c.Device == device && c.Level == memoryLevel {
			most = max(most, c.Median)
		}
	}
	return most
}

// parts are the classes of a set.
func (m *Machine) parts(set topotree.CPUSet, path Path) (out []Part) {
	for _, class := range m.Classes() {
		var pus topotree.CPUSet
		for pu := range set.All() {
			if m.Class(pu).ID == class.ID {
				pus = pus.Union(topotree.NewCPUSet(pu))
			}
		}
		if !pus.IsEmpty() {
			out = append(out, Part{Class: class.Name, PUs: pus, Peak: m.Peak(pus, path).Value,
				Read: m.Bandwidth(pus, Local).Value})
		}
	}
	return out
}

// coreCeiling is the ceiling of a set of PUs without devices.
func (m *Machine) coreCeiling(set topotree.CPUSet, path Path) (Ceiling, error) {
	bandwidth, peak := m.Bandwidth(set, Local), m.Peak(set, path)
	if !bandwidth.Known() || !peak.Known() {
		return Ceiling{}, fmt.Errorf("the profile has no ceiling of memory and of %s; "+
			"measure them with `sandwich probe --measure quick`", path)
	}
	return Ceiling{Bandwidth: bandwidth.Value, Targets: []Target{{Name: path.String(), Peak: peak.Value}}}, nil
}

// CoreCeilings are the ceilings of a set of PUs for some data types on one instruction set, without
// devices.
func (m *Machine) CoreCeilings(set topotree.CPUSet, isa string, types []string) (map[string]Ceiling, error) {
	out := map[string]Ceiling{}
	for _, typ := range types {
		r, err := m.coreCeiling(set, Path{isa, typ})
		if err != nil {
			return nil, err
		}
		out[typ] = r
	}
	return out, nil
}
