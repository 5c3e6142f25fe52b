package selection

import (
	"fmt"
	"slices"

	"sandwich/internal/message"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/topotree"
)

// adapt applies the flags that a plan permits and rejects those that contradict its tuning.
func (o *Options) adapt(p, asked *plans.Plan) error {
	if o.Compute != "auto" && o.Compute != "" && !slices.Equal(p.Weights, asked.Weights) {
		return fmt.Errorf("the plan %s does not use the path %s for all weights", p.Name, o.Compute)
	}
	if o.Attend != "" && o.Attend != "auto" && p.Attention != asked.Attention {
		return fmt.Errorf("the plan %s uses attention by %s", p.Name, p.Attention)
	}
	if err := o.matchISA(p, asked); err != nil {
		return err
	}
	if o.TP > 0 && o.TP != p.TP() {
		return fmt.Errorf("the plan %s is for %s, not for --tp %d", p.Name, message.Plural(p.TP(), "rank"), o.TP)
	}
	if o.KV != "" {
		kv, err := microkernel.ParseKVType(o.KV)
		if err != nil {
			return fmt.Errorf("--kv: %w", err)
		}
		if err := p.Attention.Reads(kv); err != nil {
			return fmt.Errorf("the plan %s: %w", p.Name, err)
		}
		p.KV = kv
	}
	if o.Device {
		if err := p.DeviceKernels(); err != nil {
			return fmt.Errorf("the plan %s: %w", p.Name, err)
		}
	}
	if id, _, _ := p.Device(); id != "" {
		if err := p.DeviceKernels(); err != nil {
			return fmt.Errorf("the plan %s runs on device %s: %w", p.Name, id, err)
		}
	}
	if o.Threads > 0 {
		return cutThreads(p, o.Threads)
	}
	return nil
}

// matchISA rejects a plan whose workers use instruction sets other than the requested ones, since
// its tables were tuned for them. asked is the untuned plan with the same flags.
func (o *Options) matchISA(p, asked *plans.Plan) error {
	if o.ISA == "" {
		return nil
	}
	isas, err := plans.ParseWorkerISAs(o.ISA)
	if err != nil {
		return err
	}
	if len(isas.Of) == 0 && len(p.Classes) == 0 {
		for _, k := range p.Kernels() {
			if name := k.ISA.String(); isas.All != name {
				return fmt.Errorf("the plan %s has kernels for %s", p.Name, k.ISA)
			}
		}
		return nil
	}
	for worker, pu := range p.Threads() {
		if have, want := p.ISAAt(pu), asked.ISAAt(pu); have != want {
			return fmt.Errorf("the plan %s has kernels for %s on worker %d, not for %s", p.Name, have, worker, want)
		}
	}
	return nil
}

// cutThreads keeps n PUs of each phase, one of each rank after another. Threads then take slices
// dynamically, since static schemes depend on the number of threads.
func cutThreads(p *plans.Plan, n int) error {
	if limit := max(p.Prefill.PUs.Count(), p.Decode.PUs.Count()); n > limit {
		return fmt.Errorf("the plan %s uses %d PUs, fewer than --threads %d", p.Name, limit, n)
	}
	if ranks := p.TP(); n < ranks {
		return fmt.Errorf("the plan %s has %d ranks, but --threads %d leaves some without a thread",
			p.Name, ranks, n)
	}
	keep := func(pus topotree.CPUSet) topotree.CPUSet {
		if pus.Count() <= n {
			return pus
		}
		return heuristic.FirstOfEach(p.Ranks, pus.Slice(), n)
	}
	s, err := plans.NewService(p.Ranks, keep(p.Prefill.PUs), keep(p.Decode.PUs))
	if err != nil {
		return err
	}
	for _, phase := range []*plans.Phase{&p.Prefill, &p.Decode} {
		if phase.PUs.Count() <= n {
			continue
		}
		for _, t := range phase.Tables {
			for i := range t.Rules {
				t.Rules[i].Schedule.WaysM, t.Rules[i].Schedule.WaysN = 0, 0
			}
		}
	}
	p.Use(s)
	return nil
}
