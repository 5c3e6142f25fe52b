package ranking

import (
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/model/modelshape"
	"sandwich/topotree"
)

// splitRows are the forwards whose ops are divided among core types: a chunk of a prompt and a
// decode step.
var splitRows = map[string]int{cost.Phases[0]: 512, cost.Phases[1]: 1}

// classes returns the core types of the machine and how they share the ops of the best
// configuration.
func (s *simulation) classes(profile *profiles.Profile, plan *plans.Plan) error {
	m := roofline.NewMachine(profile)
	kinds := m.Classes()
	if len(kinds) < 2 {
		return nil
	}
	path := roofline.Path{ISA: plan.Widest(), Type: "f32"}
	fastest := 0.0
	for _, k := range kinds {
		var all []int
		for pu := range profile.CorePUs().All() {
			if m.Class(pu).ID == k.ID {
				all = append(all, pu)
			}
		}
		if len(all) == 0 {
			continue
		}
		set, one := topotree.NewCPUSet(all...), m.Peak(topotree.NewCPUSet(all[0]), path).Value
		fastest = max(fastest, one)
		s.out.Classes = append(s.out.Classes, ClassRow{Name: k.Name, PUs: set.String(), Peak: m.Peak(set, path).Value,
			Share: one / fastest, Read: m.Bandwidth(set, roofline.Local).Value})
	}
	best := *plan
	config := s.out.Ranked[0].Config
	best.Prefill.PUs, best.Decode.PUs = config.Prefill, config.Decode
	p := cost.Placer{Model: s.o.Model, Plan: &best, Machine: m, Context: rateDepth}
	if p.Model == nil {
		var err error
		if p.Model, err = modelshape.Outline(s.o.Shape); err != nil {
			return err
		}
	}
	for _, phase := range cost.Phases {
		list, err := p.At(phase, splitRows[phase])
		if err != nil {
			return err
		}
		s.out.Placed = append(s.out.Placed, cost.Join(list)...)
	}
	return nil
}
