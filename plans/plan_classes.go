package plans

import (
	"fmt"
	"slices"

	"sandwich/internal/message"
	"sandwich/microkernel"
	"sandwich/topotree"
)

// ClassOf returns the name of the class of a PU, "" for the main class.
func (p *Plan) ClassOf(pu int) string {
	for i := range p.Classes {
		if p.Classes[i].PUs.Contains(pu) {
			return p.Classes[i].Name
		}
	}
	return ""
}

// OfClass returns the PUs of a set whose workers belong to a class; "" is the main class.
func (p *Plan) OfClass(class string, pus topotree.CPUSet) topotree.CPUSet {
	if class == "" {
		for i := range p.Classes {
			pus = pus.Minus(p.Classes[i].PUs)
		}
		return pus
	}
	if c := p.class(class); c != nil {
		return pus.Intersect(c.PUs)
	}
	return topotree.CPUSet{}
}

// class returns the class with a name, or nil.
func (p *Plan) class(name string) *Class {
	for i := range p.Classes {
		if p.Classes[i].Name == name {
			return &p.Classes[i]
		}
	}
	return nil
}

// Threads returns the PUs of the workers in the order of the worker indexes. PUs that work in both
// phases come first, so that worker 0, whose thread runs the engine's loop, takes part in both
// phases where they overlap.
func (p *Plan) Threads() []int {
	decode, prefill := p.Decode.PUs, p.Prefill.PUs
	return slices.Concat(decode.Intersect(prefill).Slice(), decode.Minus(prefill).Slice(),
		prefill.Minus(decode).Slice())
}

// checkClasses checks that classes have distinct names, disjoint PUs and at least one worker each,
// and that workers are left for the main class.
func (p *Plan) checkClasses() error {
	if len(p.Classes) > maxClasses {
		return fmt.Errorf("%d classes of workers, more than %d", len(p.Classes), maxClasses)
	}
	all := p.PUs()
	taken := map[int]string{}
	for i, c := range p.Classes {
		if err := checkClass(c.Name); err != nil {
			return err
		}
		switch {
		case c.Name == MainClass:
			return fmt.Errorf("class %s: the name is reserved for workers without a class", c.Name)
		case p.class(c.Name) != &p.Classes[i]:
			return fmt.Errorf("class %s is listed twice", c.Name)
		case c.PUs.IsEmpty():
			return fmt.Errorf("class %s has no PU", c.Name)
		case len(c.Kind) > 128:
			return fmt.Errorf("class %s: kind has %d characters, more than 128", c.Name, len(c.Kind))
		}
		if extra := c.PUs.Minus(all); !extra.IsEmpty() {
			return fmt.Errorf("class %s is on the PUs %s, which work in no phase", c.Name, extra)
		}
		for pu := range c.PUs.All() {
			if of, ok := taken[pu]; ok {
				return fmt.Errorf("PU %d is in the classes %s and %s", pu, of, c.Name)
			}
			taken[pu] = c.Name
		}
	}
	if len(taken) == all.Count() {
		return fmt.Errorf("the classes cover all PUs: remove one class and make its tables the main ones")
	}
	return nil
}

// checkTables checks that a phase has a table of each shape for the main class, then one for each
// other class.
func (p *Plan) checkTables(ph *Phase, shapes []tableShape) error {
	each := 1 + len(p.Classes)
	if len(ph.Tables) != each*len(shapes) || len(ph.Tables) > maxTables {
		of := ""
		if each > 1 {
			of = fmt.Sprintf(" in each of %d classes of workers", each)
		}
		return fmt.Errorf("%d tables for %d weights%s", len(ph.Tables), len(shapes), of)
	}
	for i := range ph.Tables {
		t, name := &ph.Tables[i], ""
		if c := i / len(shapes); c > 0 {
			name = p.Classes[c-1].Name
		}
		if want := shapes[i%len(shapes)].WeightKey; t.WeightKey != want || t.Class != name {
			return fmt.Errorf("table of %s where the weights have %s", t.title(), Table{WeightKey: want,
				Class: name}.title())
		}
	}
	return nil
}

// checkSameBits checks that the tables of a weight give equal bits in all classes (rule 6) and that
// they do not assign slices to threads, which exec does for heterogeneous workers.
func (p *Plan) checkSameBits(ph *Phase) error {
	if len(p.Classes) == 0 {
		return nil
	}
	first := map[WeightKey]microkernel.Spec{}
	for i := range ph.Tables {
		t := &ph.Tables[i]
		c := p.class(t.Class)
		for _, r := range t.Rules {
			k := r.Schedule.Kernel
			if r.Schedule.WaysM+r.Schedule.WaysN > 0 {
				return fmt.Errorf("table %s: ways need workers of one class, but this plan has %d: "+
					"leave them out",
					t.title(), 1+len(p.Classes))
			}
			if c != nil && !c.ISA.Covers(k.ISA) {
				return fmt.Errorf("table %s: kernel %s needs %s, but the class has %s", t.title(), k, k.ISA, c.ISA)
			}
			if f, ok := first[t.WeightKey]; !ok {
				first[t.WeightKey] = k
			} else if !k.SameBits(f) {
				return fmt.Errorf("table %s: kernels %s and %s round differently, but all workers must give a product "+
					"the same bits: give the weight another path", t.title(), f, k)
			}
		}
	}
	return nil
}

// FitClasses returns the plan without the optional classes that a host lacks; their workers join
// the main class. CheckHost rejects hosts that lack other classes.
func (p *Plan) FitClasses(features microkernel.Features, m *topotree.Machine) *Plan {
	if !slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Optional && c.Lacks(features, m) != "" }) {
		return p
	}
	fit := *p
	fit.Classes = slices.DeleteFunc(slices.Clone(p.Classes), func(c Class) bool {
		return c.Optional && c.Lacks(features, m) != ""
	})
	for _, ph := range fit.phases() {
		ph.phase.Tables = slices.DeleteFunc(slices.Clone(ph.phase.Tables), func(t Table) bool {
			return t.Class != "" && fit.class(t.Class) == nil
		})
	}
	return &fit
}

// trimClasses removes PUs that work in no phase from the classes. A class without PUs is removed
// with its tables. If no main worker is left, the first class becomes the main one.
func (p *Plan) trimClasses() {
	if len(p.Classes) == 0 {
		return
	}
	all := p.PUs()
	classes := slices.Clone(p.Classes)
	left := all.Count()
	for i := range classes {
		classes[i].PUs = classes[i].PUs.Intersect(all)
		left -= classes[i].PUs.Count()
	}
	classes = slices.DeleteFunc(classes, func(c Class) bool { return c.PUs.IsEmpty() })
	main := ""
	if left == 0 {
		main, classes = classes[0].Name, classes[1:]
	}
	for _, ph := range p.phases() {
		var tables, others []Table
		for _, t := range ph.phase.Tables {
			switch {
			case t.Class == main:
				t.Class = ""
				tables = append(tables, t)
			case slices.ContainsFunc(classes, func(c Class) bool { return c.Name == t.Class }):
				others = append(others, t)
			}
		}
		ph.phase.Tables = append(tables, others...)
	}
	if p.Classes = classes; len(classes) == 0 {
		p.Classes = nil
	}
}

// ISAAt returns the instruction set of the worker on a PU.
func (p *Plan) ISAAt(pu int) microkernel.ISA { return p.ISAOf(p.ClassOf(pu)) }

// ISAOf returns the instruction set that workers of a class use for operations other than products.
// For the main class it is the widest that its kernels use.
func (p *Plan) ISAOf(class string) microkernel.ISA {
	if c := p.class(class); c != nil {
		return c.ISA
	}
	isa := microkernel.Go
	for _, ph := range p.phases() {
		for _, t := range ph.phase.Tables {
			for _, r := range t.Rules {
				if t.Class == "" {
					isa = isa.Wider(r.Schedule.Kernel.ISA)
				}
			}
		}
	}
	return isa
}

// Lacks returns why a host has no workers of the class, or "" if it has them.
func (c *Class) Lacks(features microkernel.Features, m *topotree.Machine) string {
	if !features.Supports(c.ISA) {
		return "this CPU lacks " + c.ISA.String()
	}
	if c.Kind == "" {
		return ""
	}
	for _, t := range m.CoreTypes {
		if t.Name == c.Kind && c.PUs.In(t.CPUs) {
			return ""
		}
	}
	return fmt.Sprintf("the PUs %s of this host are not cores of type %q", c.PUs, message.Clip(c.Kind, 60))
}

// Use replaces the service configuration of the plan. Tables stay as they are, except that tables
// of classes without workers are removed.
func (p *Plan) Use(s ServiceConfig) {
	p.Ranks, p.Prefill.PUs, p.Decode.PUs = s.Ranks, s.PrefillPUs, s.DecodePUs
	p.trimClasses()
}
