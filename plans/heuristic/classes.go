package heuristic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
)

// kind is a worker kind: workers on cores of one type with one instruction set.
type kind struct {
	core int // index in Machine.CoreTypes, -1 if unknown
	isa  microkernel.ISA
	pus  topotree.CPUSet
}

// kinds groups the workers of a plan by kind, sorted by core type (fastest first), then by vector
// width (widest first). The first kind is the plan's main class.
func (o Options) kinds(p *profiles.Profile, threads []int, isas plans.WorkerISAs) ([]kind, error) {
	widest := p.Features().Best()
	if isas.All != "" {
		var err error
		if widest, err = microkernel.ParseISA(isas.All); err != nil {
			return nil, err
		}
	}
	var list []kind
	for worker, pu := range threads {
		k := kind{core: -1, isa: widest}
		if isa, ok := isas.Of[worker]; ok {
			k.isa = isa
		}
		if o.Like != nil && o.Like.PUs().Contains(pu) {
			k.isa = o.Like.ISAAt(pu)
		}
		if p.Machine != nil {
			for i, t := range p.Machine.CoreTypes {
				if t.CPUs.Contains(pu) {
					k.core = i
				}
			}
		}
		i := slices.IndexFunc(list, func(o kind) bool { return o.core == k.core && o.isa == k.isa })
		if i < 0 {
			i = len(list)
			list = append(list, k)
		}
		list[i].pus = list[i].pus.Union(topotree.NewCPUSet(pu))
	}
	slices.SortStableFunc(list, func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.core, b.core), cmp.Compare(b.isa.Lanes(), a.isa.Lanes()))
	})
	return list, nil
}

// addClasses adds a worker class with default tables for each kind but the first.
func addClasses(p *plans.Plan, host *profiles.Profile, list []kind) error {
	for _, k := range list[1:] {
		c := plans.Class{Name: className(p, host, k, list[0]), ISA: k.isa, PUs: k.pus}
		if k.core != list[0].core && k.core >= 0 {
			c.Kind = host.Machine.CoreTypes[k.core].Name
		}
		h, err := newHost(host, k.isa, k.pus.First())
		if err != nil {
			return err
		}
		if err := addTables(p, h, c.Name); err != nil {
			return fmt.Errorf("class %s: %w", c.Name, err)
		}
		p.Classes = append(p.Classes, c)
	}
	return nil
}

// className returns a unique class name from the instruction set and core type by which the class
// differs from the main one.
func className(p *plans.Plan, host *profiles.Profile, k, main kind) string {
	var parts []string
	if k.core != main.core && k.core >= 0 {
		parts = append(parts, host.Machine.CoreTypes[k.core].Name)
	}
	if k.isa != main.isa || len(parts) == 0 {
		parts = append(parts, k.isa.String())
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, strings.Join(parts, "-"))
	if name[0] < 'a' || name[0] > 'z' {
		name = "c" + name
	}
	name = name[:min(len(name), 28)]
	for i := 2; slices.ContainsFunc(p.Classes, func(c plans.Class) bool { return c.Name == name }) ||
		name == plans.MainClass; i++ {
		name = fmt.Sprintf("%s-%d", name[:min(len(name), 28)], i)
	}
	return name
}

// mainPU returns the PU whose caches represent the first kind.
func mainPU(p *profiles.Profile, list []kind) int {
	if len(list) == 1 {
		return firstPU(p)
	}
	return list[0].pus.First()
}
