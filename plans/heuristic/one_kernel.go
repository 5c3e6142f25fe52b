package heuristic

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
)

// UseKernel sets the kernel of every rule of a plan, with default slices, for benchmarks that
// compare kernels. All weights must have the kernel's type and compute path.
func UseKernel(p *plans.Plan, host *profiles.Profile, kernel microkernel.Spec) error {
	if err := kernel.Validate(); err != nil {
		return err
	}
	if have := host.Features(); !have.Has(kernel.Needs()) {
		return fmt.Errorf("%w: kernel %s needs %s, this host has %s", plans.ErrISA, kernel, kernel.Needs(), have)
	}
	for _, w := range p.Weights {
		if t, err := microkernel.ParseWeightType(w.Type); err != nil || t != kernel.B || w.Compute != kernel.Compute {
			return fmt.Errorf("kernel %s is for %s weights in %s, not for %s in %s", kernel, kernel.B, kernel.Compute,
				w.WeightKey, w.Compute)
		}
	}
	cores := coresOf(roofline.NewMachine(host), kernel.ISA, firstPU(host))
	for _, phase := range []*plans.Phase{&p.Prefill, &p.Decode} {
		cores.Threads = phase.PUs.Count()
		for _, t := range phase.Tables {
			for i := range t.Rules {
				m := t.Rules[i].MHi
				if m == 0 {
					m = openM
				}
				var err error
				if t.Rules[i].Schedule, err = cores.Slice(kernel, false, t.WeightKey, m); err != nil {
					return err
				}
			}
		}
	}
	return p.Validate()
}
