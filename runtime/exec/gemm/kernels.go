package gemm

import (
	"fmt"
	"sync"

	"sandwich/microkernel"
	"sandwich/plans"
)

// Kernels builds and caches the GEMM kernels of a process, and has the vector kernels of one
// instruction set. It is safe for concurrent use.
type Kernels struct {
	Vec *microkernel.Vec
	*cache
}

// cache has the GEMM kernels built so far, for all worker kinds.
type cache struct {
	mu      sync.Mutex
	kernels map[microkernel.Spec]*microkernel.Kernel
}

// NewKernels returns the kernels of an instruction set and builds all kernels that a plan names;
// the plan may be nil.
func NewKernels(isa microkernel.ISA, plan *plans.Plan) (*Kernels, error) {
	vec, err := microkernel.NewVec(isa)
	if err != nil {
		return nil, err
	}
	k := &Kernels{Vec: vec, cache: &cache{kernels: map[microkernel.Spec]*microkernel.Kernel{}}}
	if plan != nil {
		_, err = k.buildAll(plan.Kernels())
	}
	return k, err
}

// withISA returns the same GEMM kernels with the vector kernels of another instruction set.
func (k *Kernels) withISA(isa microkernel.ISA) (*Kernels, error) {
	vec, err := microkernel.NewVec(isa)
	return &Kernels{Vec: vec, cache: k.cache}, err
}

// Build returns the kernel of a spec. It is an error if this host cannot run it.
func (k *Kernels) Build(s microkernel.Spec) (*microkernel.Kernel, error) {
	list, err := k.buildAll([]microkernel.Spec{s})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// BuildPhase builds all kernels that a phase names.
func (k *Kernels) BuildPhase(p *plans.Phase) error {
	var specs []microkernel.Spec
	for _, t := range p.Tables {
		for _, r := range t.Rules {
			specs = append(specs, r.Schedule.Kernel)
		}
	}
	_, err := k.buildAll(specs)
	return err
}

// buildAll returns the kernels of some specs, which may repeat.
func (k *Kernels) buildAll(specs []microkernel.Spec) ([]*microkernel.Kernel, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var missing []microkernel.Spec
	for _, s := range specs {
		if k.kernels[s] == nil {
			missing = append(missing, s)
		}
	}
	fresh, err := microkernel.BuildAll(missing)
	if err != nil {
		return nil, err
	}
	for i, s := range missing {
		k.kernels[s] = fresh[i]
	}
	out := make([]*microkernel.Kernel, len(specs))
	for i, s := range specs {
		out[i] = k.kernels[s]
	}
	return out, nil
}

// Kind is a worker kind (plans.Class) and the code that its workers run.
type Kind struct {
	Name    string // as the tables of the plan name it; "" is the main kind
	Kernels *Kernels
}

// NewKinds returns the main kind and those that a plan defines in addition; the plan may be nil.
func NewKinds(main *Kernels, plan *plans.Plan) ([]Kind, error) {
	list := []Kind{{Kernels: main}}
	if plan == nil {
		return list, nil
	}
	for _, c := range plan.Classes {
		k, err := main.withISA(c.ISA)
		if err != nil {
			return nil, err
		}
		list = append(list, Kind{c.Name, k})
	}
	return list, nil
}

// Build compiles every schedule of a plan, which loading the plan does one by one.
func Build(plan *plans.Plan) error {
	k, err := NewKernels(plan.ISAOf(""), plan)
	if err != nil {
		return err
	}
	if _, err = NewKinds(k, plan); err != nil {
		return err
	}
	for _, phase := range []*plans.Phase{&plan.Prefill, &plan.Decode} {
		for _, t := range phase.Tables {
			for _, r := range t.Rules {
				if _, err := New(k, r.Schedule, t.WeightKey); err != nil {
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
		g, err := New(kind.Kernels, r.Schedule, key)
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
