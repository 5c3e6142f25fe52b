package gemm

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/background"
)

// Kind is a worker kind (plans.Class) and the vector kernels that its workers run. GEMM kernels are
// those of the schedules; microkernel caches them.
type Kind struct {
	Name string // as the tables of the plan name it; "" is the main kind
	Vec  *microkernel.Vec
}

// NewKinds returns the main kind, whose workers have the given instruction set, and the kinds that
// a plan defines in addition. It builds all kernels that the plan names, in pieces; the plan may be
// nil.
func NewKinds(isa microkernel.ISA, plan *plans.Plan, pieces background.Run) (list []Kind, err error) {
	add := func(name string, isa microkernel.ISA) error {
		var vec *microkernel.Vec
		pieces.Once(func() { vec, err = microkernel.NewVec(isa) })
		list = append(list, Kind{name, vec})
		return err
	}
	if err := add("", isa); err != nil {
		return nil, err
	}
	if plan == nil {
		return list, nil
	}
	if err := build(plan.Kernels(), pieces); err != nil {
		return nil, err
	}
	for _, c := range plan.Classes {
		if err := add(c.Name, c.ISA); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// build builds kernels: in pieces, or together, on all threads.
func build(specs []microkernel.Spec, pieces background.Run) (err error) {
	if pieces != nil {
		return microkernel.BuildPieces(specs, pieces)
	}
	_, err = microkernel.BuildAll(specs)
	return err
}

// BuildPhase builds all kernels that a phase names together, which seals executable memory once.
func BuildPhase(p *plans.Phase, pieces background.Run) error {
	var specs []microkernel.Spec
	for _, t := range p.Tables {
		for _, r := range t.Rules {
			specs = append(specs, r.Schedule.Kernel)
		}
	}
	return build(specs, pieces)
}

// Build compiles every schedule of a plan, which loading the plan does one by one.
func Build(plan *plans.Plan) error {
	kinds, err := NewKinds(plan.ISAOf(""), plan, nil)
	if err != nil {
		return err
	}
	for _, phase := range []*plans.Phase{&plan.Prefill, &plan.Decode} {
		for _, t := range phase.Tables {
			for _, r := range t.Rules {
				if _, err := New(kinds[0].Vec, r.Schedule, t.WeightKey); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// schedules are the compiled schedules of a weight in one phase, by the number of rows.
type schedules struct {
	rules        []rule
	meter        int // index of the weight shape in the throughput model
	scratchBytes int
}

type rule struct {
	hi   int // largest m; the last rule has no bound
	gemm *Gemm
}

func newSchedules(kind *Kind, phase *plans.Phase, key plans.WeightKey, compute microkernel.Compute) (*schedules,
	error) {
	table, ok := phase.TableOf(kind.Name, key)
	if !ok { // a plan of one kind on workers of several
		table, ok = phase.Table(key)
	}
	if !ok || len(table.Rules) == 0 {
		return nil, fmt.Errorf("the plan has no schedule for %s; use a plan for this model", key)
	}
	p := &schedules{}
	for _, r := range table.Rules {
		if r.Schedule.Kernel.Compute != compute {
			return nil, fmt.Errorf("the plan computes %s in %s but names kernel %s", key, compute, r.Schedule.Kernel)
		}
		g, err := New(kind.Vec, r.Schedule, key)
		if err != nil {
			return nil, fmt.Errorf("schedule for %s, M from %d: %w", key, r.MLo, err)
		}
		p.rules = append(p.rules, rule{hi: r.MHi, gemm: g})
		p.scratchBytes = max(p.scratchBytes, g.ScratchBytes())
	}
	return p, nil
}

// of returns the Gemm for m rows.
func (p *schedules) of(m int) *Gemm {
	last := len(p.rules) - 1
	for i := range last {
		if m <= p.rules[i].hi {
			return p.rules[i].gemm
		}
	}
	return p.rules[last].gemm
}
