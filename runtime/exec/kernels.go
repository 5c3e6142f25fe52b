package exec

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"sandwich/microkernel"
	"sandwich/plans"
)

// Kernels builds and keeps the kernels that a process runs: those a plan names, and the vector
// kernels of one instruction set. Safe for concurrent use.
type Kernels struct {
	Vec *microkernel.Vec
	*built
}

// built is the kernels that were made so far, for all classes of workers.
type built struct {
	mu      sync.Mutex
	kernels map[microkernel.Spec]*microkernel.Kernel
}

// newKernels prepares the kernels of an instruction set and builds everything a plan (or nil) names
// in one go.
func newKernels(isa microkernel.ISA, plan *plans.Plan) (*Kernels, error) {
	vec, err := microkernel.NewVec(isa)
	if err != nil {
		return nil, err
	}
	k := &Kernels{Vec: vec, built: &built{kernels: map[microkernel.Spec]*microkernel.Kernel{}}}
	if plan != nil {
		_, err = k.buildAll(plan.Kernels())
	}
	return k, err
}

// beside are the same kernels with the vector kernels of another instruction set.
func (k *Kernels) beside(isa microkernel.ISA) (*Kernels, error) {
	vec, err := microkernel.NewVec(isa)
	return &Kernels{Vec: vec, built: k.built}, err
}

// BuildPlan builds all code that forwards under a plan run, as loading it does piece by piece: the
// kernels of its products, what widens their weights, the row-wise kernels and attention.
func BuildPlan(plan *plans.Plan) error {
	isas := []microkernel.ISA{plan.ISAOf("")}
	for _, c := range plan.Classes {
		isas = append(isas, c.ISA)
	}
	attention := make([]error, len(isas))
	layout := microkernel.KVLayout{HeadDim: plan.Model.HeadDim, Elem: plan.KV}.For(plan.Attention)
	var beside sync.WaitGroup // while the products are built
	for i, isa := range isas {
		beside.Go(func() {
			_, attention[i] = microkernel.NewAttention(isa, layout, microkernel.AttentionForm{Dot: plan.Attention})
		})
	}
	err := buildProducts(plan)
	beside.Wait()
	return cmp.Or(err, errors.Join(attention...))
}

// buildProducts is BuildPlan without attention.
func buildProducts(plan *plans.Plan) error {
	k, err := newKernels(plan.ISAOf(""), plan)
	if err != nil {
		return err
	}
	if _, err = newClasses(k, plan); err != nil {
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
	return nil
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

// phaseGemm is a weight's schedules in one phase, compiled: which Gemm runs m rows.
type phaseGemm struct {
	rules        []phaseRule
	meter        int // of its shape, in the pacer of the executor
	scratchBytes int
}

type phaseRule struct {
	hi   int // last m; the last rule is open
	gemm *Gemm
}

func newPhaseGemm(c *class, phase *plans.Phase, key plans.WeightKey, compute microkernel.Compute) (*phaseGemm,
	error) {
	table, ok := phase.TableOf(c.name, key)
	if !ok { // a plan of one class on workers of several
		table, ok = phase.Table(key)
	}
	if !ok || len(table.Rules) == 0 {
		return nil, fmt.Errorf("the plan has no schedule for %s: it was made for another model", key)
	}
	p := &phaseGemm{}
	for _, r := range table.Rules {
		if r.Schedule.Kernel.Compute != compute {
			return nil, fmt.Errorf("the plan computes %s in %s but names kernel %s", key, compute, r.Schedule.Kernel)
		}
		g, err := NewGemm(c.kernels, r.Schedule, key)
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
