package plans

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Class is a kind of worker that runs tables of its own (SMEPilot section 4.4: the targets that an
// operator is divided among): those on some PUs. Workers on no PU of a class are the main ones,
// whose tables name no class. How fast a class is is no part of a plan: it is measured where it
// runs. heuristic.Default makes classes, exec.NewWorkers gives workers theirs.
type Class struct {
	Name string          `json:"name"` // as tables name it
	ISA  microkernel.ISA `json:"isa"`  // of the work beside its products; their kernels need no wider one
	PUs  PUSet           `json:"pus"`
	Kind string          `json:"kind,omitempty"` // of core, as the tree names it; "": any
	// Alone, the class is no reason to refuse a host that lacks its cores or its instructions: its
	// workers then run the main tables.
	Optional bool `json:"optional,omitempty"`
}

// MainClass is what people read where a worker is of no class.
const MainClass = "main"

// maxClasses bounds the classes of a plan.
const maxClasses = 16

// classDoc is the one-line form in plan.yaml.
type classDoc struct {
	Name     string          `yaml:"name"`
	ISA      microkernel.ISA `yaml:"isa"`
	PUs      PUSet           `yaml:"pus"`
	Kind     string          `yaml:"kind,omitempty"`
	Optional bool            `yaml:"optional,omitempty"`
}

// MarshalYAML writes a class on one line.
func (c Class) MarshalYAML() (any, error) { return profiles.FlowYAML(classDoc(c)) }

// UnmarshalYAML reads what MarshalYAML writes.
func (c *Class) UnmarshalYAML(unmarshal func(any) error) error {
	var d classDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*c = Class(d)
	return nil
}

// String is the class as `plan show` and messages name it: avx2 (avx2) on PUs 1.
func (c Class) String() string {
	text := fmt.Sprintf("%s (%s) on PUs %s", c.Name, c.ISA, c.PUs)
	if c.Kind != "" {
		text += ", cores " + c.Kind
	}
	if c.Optional {
		text += ", or as " + MainClass
	}
	return text
}

// ClassOf is the name of the class of a PU; "" is the main one.
func (p *Plan) ClassOf(pu int) string {
	for i := range p.Classes {
		if slices.Contains(p.Classes[i].PUs, pu) {
			return p.Classes[i].Name
		}
	}
	return ""
}

// class finds a class by its name.
func (p *Plan) class(name string) *Class {
	for i := range p.Classes {
		if p.Classes[i].Name == name {
			return &p.Classes[i]
		}
	}
	return nil
}

// Threads are the PUs of workers in the order of their numbers: those that work in both phases
// first, so that worker 0, whose thread runs the engine's loop, takes part in both wherever they
// overlap.
func (p *Plan) Threads() (pus []int) {
	for _, pu := range p.Decode.PUs {
		if slices.Contains(p.Prefill.PUs, pu) {
			pus = append(pus, pu)
		}
	}
	for _, pu := range slices.Concat(p.Decode.PUs, p.Prefill.PUs) {
		if !slices.Contains(pus, pu) {
			pus = append(pus, pu)
		}
	}
	return pus
}

// checkClasses wants classes that share no name and no PU, each with workers.
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
			return fmt.Errorf("class %s: the name is that of workers without a class", c.Name)
		case p.class(c.Name) != &p.Classes[i]:
			return fmt.Errorf("class %s is listed twice", c.Name)
		case len(c.PUs) == 0:
			return fmt.Errorf("class %s has no PU", c.Name)
		case len(c.Kind) > 128:
			return fmt.Errorf("class %s: its kind of core has a name of %d characters", c.Name, len(c.Kind))
		}
		if err := c.PUs.check(); err != nil {
			return fmt.Errorf("class %s: %w", c.Name, err)
		}
		if extra := c.PUs.missing(all); len(extra) > 0 {
			return fmt.Errorf("class %s is on the PUs %s, which work in no phase", c.Name, extra)
		}
		for _, pu := range c.PUs {
			if of, ok := taken[pu]; ok {
				return fmt.Errorf("PU %d is of the classes %s and %s", pu, of, c.Name)
			}
			taken[pu] = c.Name
		}
	}
	if len(taken) == len(all) {
		return fmt.Errorf("no PU is left for the main class: leave out the class whose tables are the main ones")
	}
	return nil
}

// checkTables wants a table of each shape for the main class, and then one for each other class.
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

// title names a table in messages.
func (t Table) title() string {
	if t.Class == "" {
		return t.WeightKey.String()
	}
	return t.WeightKey.String() + " for class " + t.Class
}

// checkUnlike wants tables of one weight to give equal bits in all classes (rule 6), and to leave
// it to exec how products are divided among unlike workers.
func (p *Plan) checkUnlike(ph *Phase) error {
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
				return fmt.Errorf("table %s: ways lay slices on workers of one class, and this plan has %d: "+
					"leave them out",
					t.title(), 1+len(p.Classes))
			}
			if c != nil && !c.ISA.Covers(k.ISA) {
				return fmt.Errorf("table %s: kernel %s needs %s, and the class has %s", t.title(), k, k.ISA, c.ISA)
			}
			if f, ok := first[t.WeightKey]; !ok {
				first[t.WeightKey] = k
			} else if !k.SameBits(f) {
				return fmt.Errorf("table %s: kernels %s and %s round differently, and all workers must give a product "+
					"the same bits: give the weight another path", t.title(), f, k)
			}
		}
	}
	return nil
}

// lacks says why a host has no workers of the class; "" where it has.
func (c *Class) lacks(features microkernel.Features, m *topotree.Machine) string {
	if !features.Supports(c.ISA) {
		return "this CPU lacks " + c.ISA.String()
	}
	if c.Kind == "" {
		return ""
	}
	for _, t := range m.CoreTypes {
		if t.Name == c.Kind && len(c.PUs.missing(t.CPUs.Slice())) == 0 {
			return ""
		}
	}
	return fmt.Sprintf("the PUs %s of this host are not of its kind %q", c.PUs, clip(c.Kind))
}

// FitClasses is the plan for a host: without the optional classes that the host lacks, whose
// workers are then main ones. CheckHost refuses the other ones.
func (p *Plan) FitClasses(features microkernel.Features, m *topotree.Machine) *Plan {
	if !slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Optional && c.lacks(features, m) != "" }) {
		return p
	}
	fit := *p
	fit.Classes = slices.DeleteFunc(slices.Clone(p.Classes), func(c Class) bool {
		return c.Optional && c.lacks(features, m) != ""
	})
	for _, ph := range fit.phases() {
		ph.phase.Tables = slices.DeleteFunc(slices.Clone(ph.phase.Tables), func(t Table) bool {
			return t.Class != "" && fit.class(t.Class) == nil
		})
	}
	return &fit
}

// trimClasses leaves classes the PUs that still work. One without any is dropped with its tables;
// where no main worker is left, the first class that has some becomes the main one.
func (p *Plan) trimClasses() {
	if len(p.Classes) == 0 {
		return
	}
	all := p.PUs()
	classes := slices.Clone(p.Classes)
	left := len(all)
	for i := range classes {
		classes[i].PUs = classes[i].PUs.Intersect(all)
		left -= len(classes[i].PUs)
	}
	classes = slices.DeleteFunc(classes, func(c Class) bool { return len(c.PUs) == 0 })
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

// ISAAt is the instruction set of the worker on a PU.
func (p *Plan) ISAAt(pu int) microkernel.ISA { return p.ISAOf(p.ClassOf(pu)) }

// ISAOf is the instruction set of the work beside products on workers of a class: for the main one
// the widest that its kernels use.
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
