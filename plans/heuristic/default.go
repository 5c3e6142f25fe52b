package heuristic

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/sched"
	"sandwich/topotree"
)

// Default returns the untuned plan: one PU of every usable core in both phases, one rank unless
// Options.TP is set, dynamic assignment of slices, and schedules by heuristic from cache sizes and
// measured rates. It fails if a weight type has no kernels or the host lacks an instruction set in
// the options.
func Default(p *profiles.Profile, s plans.ModelShape, o Options) (*plans.Plan, error) {
	isas, err := o.isas(p)
	if err != nil {
		return nil, err
	}
	service, err := o.service(p)
	if err != nil {
		return nil, err
	}
	plan := &plans.Plan{
		Version: plans.Version, Name: "default", Fingerprint: p.Fingerprint(),
		SeqMax: o.SeqMax, BatchMax: o.BatchMax, Model: s,
	}
	plan.Use(service)
	if err := isas.Check(p.Features(), len(plan.Threads())); err != nil {
		return nil, err
	}
	list, err := o.kinds(p, plan.Threads(), isas)
	if err != nil {
		return nil, err
	}
	h, err := newHost(p, list[0].isa, mainPU(p, list))
	if err != nil {
		return nil, err
	}
	for _, k := range list[1:] {
		h.others = append(h.others, k.isa)
	}
	if o.KV != "" {
		if plan.KV, err = microkernel.ParseKVType(o.KV); err != nil {
			return nil, fmt.Errorf("--kv: %w", err)
		}
	}
	if plan.SeqMax == 0 {
		plan.SeqMax = 2048
		if s.Context > 0 {
			plan.SeqMax = min(plan.SeqMax, s.Context)
		}
	}
	if plan.BatchMax == 0 {
		plan.BatchMax = 16
	}
	plan.Chunk = min(sched.DefaultChunk, plan.SeqMax)
	if err := h.checkCompute(o.Compute, s); err != nil {
		return nil, err
	}
	if err := addDefaults(plan, o, h); err != nil {
		return nil, err
	}
	if plan.Attention, err = h.attention(o.Attend, plan); err != nil {
		return nil, err
	}
	if err := addClasses(plan, p, list); err != nil {
		return nil, err
	}
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("no default plan for %s: %w", s.Name, err)
	}
	return plan, nil
}

// Service returns the ranks and PUs of the default plan without making the plan.
func Service(p *profiles.Profile, o Options) (plans.ServiceConfig, error) { return o.service(p) }

// service returns the service configuration for the options.
func (o Options) service(p *profiles.Profile) (plans.ServiceConfig, error) {
	if o.Service != nil {
		return *o.Service, nil
	}
	pus, err := o.pus(p)
	if err != nil {
		return plans.ServiceConfig{}, err
	}
	ranks, err := o.ranks(p, pus)
	if err != nil {
		return plans.ServiceConfig{}, err
	}
	if len(ranks) > 1 {
		pus = topotree.CPUSet{}
		for _, r := range ranks {
			pus = pus.Union(r.PUs)
		}
	}
	return plans.NewService(ranks, pus, pus)
}

// ranks divides the PUs among ranks. Fewer threads than cores do not move ranks: ranks are made
// from all cores, each on its own node if there are enough, and then keep their PUs with the least
// load.
func (o Options) ranks(p *profiles.Profile, pus topotree.CPUSet) ([]plans.Rank, error) {
	cores := p.CorePUs()
	if o.TP <= 1 || o.TP > pus.Count() || pus.Count() >= cores.Count() {
		return MakeRanks(p, pus, max(1, o.TP))
	}
	ranks, err := MakeRanks(p, cores, o.TP)
	if err != nil {
		return nil, err
	}
	keep := FirstOfEach(ranks, p.ByLoad(cores.Slice(), o.Load), pus.Count())
	for i := range ranks {
		ranks[i].PUs = ranks[i].PUs.Intersect(keep)
		ranks[i].NUMANode = p.Machine.CommonNode(ranks[i].PUs)
	}
	return ranks, nil
}

// pus returns the PUs of the workers.
func (o Options) pus(p *profiles.Profile) (topotree.CPUSet, error) {
	usable := p.UsablePUs()
	switch {
	case o.Threads < 0:
		return topotree.CPUSet{}, fmt.Errorf("%d threads; use at least 1, or 0 for one per core", o.Threads)
	case usable.IsEmpty():
		return topotree.CPUSet{}, fmt.Errorf("%w: no PU is available to this process", plans.ErrForeignHost)
	case o.Threads > usable.Count():
		return topotree.CPUSet{}, fmt.Errorf("%w: %d threads are more than the %d usable PUs (%s)",
			plans.ErrForeignHost,
			o.Threads, usable.Count(), usable)
	}
	return p.PickPUs(o.Threads, o.Load), nil
}
