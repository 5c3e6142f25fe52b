package profiles

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/topotree"
)

// builtin is a machine of the papers. Its notes name the sources of the numbers of packages, nodes
// and cores; values without a source are assumed and marked so.
type builtin struct {
	arch, model string // uname's architecture; CPU model
	isa         []string
	packages    int
	nodes       int   // per package
	memory      int64 // per node
	l3          int64 // one per node, shared by all parts that are not outside; 0: none, or the parts have their own
	parts       []part
	number      numbering
	ceilings    []Ceiling
	matrices    []Matrix
	notes       []string
}

// part is a group of equal cores in each node.
type part struct {
	cores, smt int
	l2         int64
	l2Cores    int // cores that share an L2
	l3         int64
	l3Cores    int    // cores that share an L3; 0: they use the node's
	outside    bool   // not connected to the node's L3
	coreType   string // "" on machines with one type; types are listed from the fastest
}

// numbering returns the PU index of thread t of core c of package p, on a machine of some packages
// with some cores each.
type numbering func(packages, cores, p, c, t int) int

// blockwise numbers package by package, all first threads before the second ones, as most firmware
// does.
func blockwise(packages, cores, p, c, t int) int { return t*packages*cores + p*cores + c }

// interleaved numbers the first core of each package, then the second of each, as some vendors do.
func interleaved(packages, cores, p, c, t int) int { return t*packages*cores + c*packages + p }

// BuiltinNames returns the sorted names of the built-in machines.
func BuiltinNames() []string { return slices.Sorted(maps.Keys(builtins)) }

// Builtin returns a built-in machine by name. Its figures are quoted or assumed, not measured. The
// error lists the names.
func Builtin(name string) (*Profile, error) {
	b, ok := builtins[name]
	if !ok {
		return nil, fmt.Errorf("no built-in machine is named %.40q; use one of %s", name, strings.Join(BuiltinNames(),
			", "))
	}
	m, err := b.machine(name)
	if err != nil {
		return nil, fmt.Errorf("built-in machine %s: %w", name, err)
	}
	p := New(m, Identity{ISA: slices.Clone(b.isa)})
	p.Ceilings, p.Matrices, p.Notes = slices.Clone(b.ceilings), slices.Clone(b.matrices), slices.Clone(b.notes)
	return p, nil
}

// builder collects the PU sets of a machine.
type builder struct {
	b     *builtin
	cores int // per package
	next  int // next core of the current package
	pkg   int
	pus   map[topotree.Kind]map[int64][]topotree.CPUSet // by kind and size
	types map[string][]int
	all   []int
}

func (b *builtin) machine(name string) (*topotree.Machine, error) {
	w := &builder{b: b, pus: map[topotree.Kind]map[int64][]topotree.CPUSet{}, types: map[string][]int{}}
	for _, p := range b.parts {
		w.cores += p.cores * b.nodes
	}
	d := topotree.Description{Source: "built-in " + name, Arch: b.arch, Model: b.model}
	for p := range b.packages {
		w.pkg, w.next = p, 0
		first := len(w.all)
		for range b.nodes {
			set := w.node()
			d.Memory = append(d.Memory, topotree.MemoryNode{ID: len(d.Memory), CPUs: set, Bytes: b.memory})
		}
		w.add(topotree.KindPackage, 0, topotree.NewCPUSet(w.all[first:]...))
	}
	d.Online = topotree.NewCPUSet(w.all...)
	for _, kind := range slices.Sorted(maps.Keys(w.pus)) {
		for _, size := range slices.Sorted(maps.Keys(w.pus[kind])) {
			d.Levels = append(d.Levels, topotree.LevelData{Kind: kind, Bytes: size, Sets: w.pus[kind][size]})
		}
	}
	for _, p := range b.parts {
		if p.coreType != "" && len(w.types[p.coreType]) > 0 {
			d.CoreTypes = append(d.CoreTypes, topotree.CoreType{Name: p.coreType,
				CPUs: topotree.NewCPUSet(w.types[p.coreType]...)})
			delete(w.types, p.coreType)
		}
	}
	return d.Machine()
}

func (w *builder) add(kind topotree.Kind, size int64, set topotree.CPUSet) {
	if w.pus[kind] == nil {
		w.pus[kind] = map[int64][]topotree.CPUSet{}
	}
	w.pus[kind][size] = append(w.pus[kind][size], set)
}

// node adds the parts of one NUMA node and returns its PUs.
func (w *builder) node() topotree.CPUSet {
	var all, shared []int
	for _, p := range w.b.parts {
		var l2, l3 []int
		for c := range p.cores {
			core := w.core(p)
			l2, l3, all = append(l2, core...), append(l3, core...), append(all, core...)
			if (c+1)%p.l2Cores == 0 {
				w.add(topotree.KindL2, p.l2, topotree.NewCPUSet(l2...))
				l2 = nil
			}
			if p.l3Cores > 0 && (c+1)%p.l3Cores == 0 {
				w.add(topotree.KindL3, p.l3, topotree.NewCPUSet(l3...))
				l3 = nil
			}
			if !p.outside {
				shared = append(shared, core...)
			}
		}
	}
	if w.b.l3 > 0 {
		w.add(topotree.KindL3, w.b.l3, topotree.NewCPUSet(shared...))
	}
	w.all = append(w.all, all...)
	return topotree.NewCPUSet(all...)
}

// core adds the next core of the package and returns its PUs.
func (w *builder) core(p part) []int {
	var pus []int
	for t := range p.smt {
		pus = append(pus, w.b.number(w.b.packages, w.cores, w.pkg, w.next, t))
	}
	w.next++
	w.add(topotree.KindCore, 0, topotree.NewCPUSet(pus...))
	w.types[p.coreType] = append(w.types[p.coreType], pus...)
	return pus
}
