package exec

import (
	"fmt"
	"sync"

	"sandwich/microkernel"
	"sandwich/plans"
)

// Kernels builds and keeps the kernels that a process runs: those a plan names, and the vector
// kernels of one instruction set. Safe for concurrent use.
type Kernels struct {
	Vec *microkernel.Vec
	isa microkernel.ISA

	mu    sync.Mutex
	built map[microkernel.Spec]*microkernel.Kernel
}

// newKernels prepares the kernels of an instruction set and builds everything a plan (or nil) names
// in one go.
func newKernels(isa microkernel.ISA, plan *plans.Plan) (*Kernels, error) {
	vec, err := microkernel.NewVec(isa)
	if err != nil {
		return nil, err
	}
	k := &Kernels{Vec: vec, isa: isa, built: map[microkernel.Spec]*microkernel.Kernel{}}
	if plan != nil {
		_, err = k.buildAll(plan.Kernels())
	}
	return k, err
}

// PlanISA is the widest instruction set that a plan's kernels use: the one for the work outside
// GEMM.
func PlanISA(plan *plans.Plan) microkernel.ISA {
	isa := microkernel.Go
	for _, s := range plan.Kernels() {
		isa = isa.Wider(s.ISA)
	}
	return isa
}

// BuildPlan builds all code that forwards under a plan run, as loading it does piece by piece: the
// kernels of its products, what widens their weights, the row-wise kernels and attention.
func BuildPlan(plan *plans.Plan) error {
	k, err := newKernels(PlanISA(plan), plan)
	if err != nil {
		return err
	}
	for _, phase := range []*plans.Phase{&plan.Prefill, &plan.Decode} {
		for _, t := range phase.Tables {
			for _, r := range t.Rules {
				if _, err := NewGemm(k, r.Schedule, t.WeightKey); err != nil {
					return err
				}
			}
		}
	}
	_, err = microkernel.NewAttention(k.Vec.ISA(), microkernel.KVLayout{HeadDim: plan.Model.HeadDim,
		Elem: plan.KV}.For(plan.Attention),
		microkernel.AttentionForm{Dot: plan.Attention})
	return err
}

// Build returns the kernel of a spec, refused by name where this host cannot run it.
func (k *Kernels) Build(s microkernel.Spec) (*microkernel.Kernel, error) {
	list, err := k.buildAll([]microkernel.Spec{s})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// buildPhase builds what a phase names in one go.
func (k *Kernels) buildPhase(p *plans.Phase) error {
	var specs []microkernel.Spec
	for _, t := range p.Tables {
		for _, r := range t.Rules {
			specs = append(specs, r.Schedule.Kernel)
		}
	}
	_, err := k.buildAll(specs)
	return err
}

// buildAll returns the kernels of some specs, which may name one more than once.
func (k *Kernels) buildAll(specs []microkernel.Spec) ([]*microkernel.Kernel, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var missing []microkernel.Spec
	for _, s := range specs {
		if k.built[s] == nil {
			missing = append(missing, s)
		}
	}
	fresh, err := microkernel.BuildAll(missing)
	if err != nil {
		return nil, err
	}
	for i, s := range missing {
		k.built[s] = fresh[i]
	}
	out := make([]*microkernel.Kernel, len(specs))
	for i, s := range specs {
		out[i] = k.built[s]
	}
	return out, nil
}

// phaseGemm is a weight's schedules in one phase, compiled: which Gemm runs m rows.
type phaseGemm struct {
	rules        []phaseRule
	scratchBytes int
}

type phaseRule struct {
	hi   int // last m; the last rule is open
	gemm *Gemm
}

func newPhaseGemm(k *Kernels, phase *plans.Phase, key plans.WeightKey, compute microkernel.Compute) (*phaseGemm,
	error) {
	table, ok := phase.Table(key)
	if !ok || len(table.Rules) == 0 {
		return nil, fmt.Errorf("the plan has no schedule for %s: it was made for another model", key)
	}
	p := &phaseGemm{}
	for _, r := range table.Rules {
		if r.Schedule.Kernel.Compute != compute {
			return nil, fmt.Errorf("the plan computes %s in %s but names kernel %s", key, compute, r.Schedule.Kernel)
		}
		g, err := NewGemm(k, r.Schedule, key)
		if err != nil {
			return nil, fmt.Errorf("schedule for %s, M from %d: %w", key, r.MLo, err)
		}
		p.rules = append(p.rules, phaseRule{hi: r.MHi, gemm: g})
		p.scratchBytes = max(p.scratchBytes, g.ScratchBytes())
	}
	return p, nil
}

// of is the Gemm for m rows.
func (p *phaseGemm) of(m int) *Gemm {
	last := len(p.rules) - 1
	for i := range last {
		if m <= p.rules[i].hi {
			return p.rules[i].gemm
		}
	}
	return p.rules[last].gemm
}
