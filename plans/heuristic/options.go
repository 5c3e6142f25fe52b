package heuristic

import (
	"fmt"
	"math"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
)

// Options restricts the choices of Default. The zero value leaves all choices to Default.
type Options struct {
	Compute  string               // auto (or "") or a path; applies to weights that have the path
	KV       string               // f16 (or ""), f32, q8_0
	ISA      string               // of workers, see plans.ParseWorkerISAs; "": the widest
	Like     *plans.Plan          // use the instruction sets of this plan's workers instead of ISA
	Attend   string               // dot product of attention; auto (or "")
	Threads  int                  // 0: one PU per usable core
	Load     profiles.PULoad      // of other processes, for the choice of PUs under Threads or a quota
	TP       int                  // tensor-parallel ranks; 0: one
	Service  *plans.ServiceConfig // ranks and PUs; replaces Threads and TP
	Weights  []plans.WeightPlan   // compute paths; take precedence over Compute
	Device   bool                 // a device runs phases: use paths that it has too, except for experts
	SeqMax   int                  // 0: 2048, at most the model's context
	BatchMax int                  // 0: 16
}

// isas returns the instruction sets in the options. It fails if the host lacks one.
func (o Options) isas(p *profiles.Profile) (plans.WorkerISAs, error) {
	isas, err := plans.ParseWorkerISAs(o.ISA)
	if err != nil {
		return isas, err
	}
	return isas, isas.Check(p.Features(), math.MaxInt)
}

// cache returns the type of the KV cache in the options.
func (o Options) cache() (microkernel.KVType, error) {
	if o.KV == "" {
		return microkernel.KVF16, nil
	}
	kv, err := microkernel.ParseKVType(o.KV)
	if err != nil {
		err = fmt.Errorf("--kv: %w", err)
	}
	return kv, err
}
