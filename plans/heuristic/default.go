package heuristic

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/sched"
	"sandwich/topotree"
)

// Options narrow what Default chooses. The zero value leaves everything to it.
type Options struct {
	Compute  string               // auto (or ""), f32, int8, int8-256, bf16: for weights that have the path
	KV       string               // f16 (or ""), f32, q8_0
	ISA      string               // of workers, as plans.ParseWorkerISAs reads it; "" for the widest
	Like     *plans.Plan          // whose workers keep their instruction sets, instead of ISA
	Attend   string               // auto (or ""), or what attention adds up by
	Threads  int                  // 0: one PU per core that may be used
	Load     profiles.PULoad      // by other processes, where Threads or a quota leaves a choice of PUs
	TP       int                  // tensor-parallel ranks; 0: one
	Service  *plans.ServiceConfig // instead of Threads and TP: ranks and PUs that were chosen already
	Weights  []plans.WeightPlan   // paths that were chosen already, before Compute
	SeqMax   int                  // 0: 2048, at most the model's context
	BatchMax int                  // 0: 16
}

// Default is the untuned plan: one PU of every core that may be used, in both phases, one rank
// unless asked for more, slices handed out dynamically, and schedules by heuristic from the
// sizes of the caches. The errors are about the model (a weight type without kernels) and about
// options (an instruction set that the host lacks).
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
		h.beside = append(h.beside, k.isa)
	}
	if o.KV != "" {
		if plan.KV, err = microkernel.ParseKVType(o.KV); err != nil {
			return nil, err
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

// addDefaults adds the weights, and the tables of what the ranks hold of them. Both phases get the
// same rules: without measurement nothing tells them apart but M.
func addDefaults(p *plans.Plan, o Options, h host) error {
	for _, k := range p.Model.Unique() {
		c, err := o.pathOf(k, h)
		if err != nil {
			return fmt.Errorf("weight %s: %w", k, err)
		}
		p.Weights = append(p.Weights, plans.WeightPlan{WeightKey: k, Compute: c})
	}
	return addTables(p, h, "")
}

// addTables adds the tables of a class of workers.
func addTables(p *plans.Plan, h host, class string) error {
	shapes, err := p.TableShapes(p.Prefill.PUs)
	if err != nil {
		return err
	}
	for _, c := range shapes {
		rules, err := h.table(c)
		if err != nil {
			return fmt.Errorf("weight %s: %w", c.WeightKey, err)
		}
		p.Prefill.Tables = append(p.Prefill.Tables, plans.Table{WeightKey: c.WeightKey, Class: class, Rules: rules})
		p.Decode.Tables = append(p.Decode.Tables, plans.Table{WeightKey: c.WeightKey, Class: class,
			Rules: slices.Clone(rules)})
	}
	return nil
}

// table makes the rules of a table shape for the largest group of threads that works on it.
func (h host) table(c plans.TableShape) ([]plans.Rule, error) {
	t, err := microkernel.ParseWeightType(c.Type)
	if err != nil {
		return nil, err
	}
	h.Threads = c.Threads
	return h.rules(c.WeightKey, t, c.Compute)
}

// pathOf is the path that a weight keeps, or a new one.
func (o Options) pathOf(k plans.WeightKey, h host) (microkernel.Compute, error) {
	for _, w := range o.Weights {
		if w.WeightKey == k {
			return w.Compute, nil
		}
	}
	t, err := microkernel.ParseWeightType(k.Type)
	if err != nil {
		return microkernel.ComputeF32, err
	}
	return defaultCompute(o.Compute, t, h)
}

// defaultCompute picks the path of a weight where nobody says: int8 for quantized weights and bf16
// for weights of that type where it is the faster path, else f32.
func defaultCompute(option string, t microkernel.WeightType, h host) (microkernel.Compute, error) {
	switch option {
	case "", "auto":
		if t.Quantized() && h.integers(t) {
			return h.integerPath(t), nil
		}
		if t == microkernel.BF16 && worthwhile(h.pairs) && h.hasPairs() {
			return microkernel.ComputeBF16, nil
		}
		return microkernel.ComputeF32, nil
	}
	c, err := microkernel.ParseCompute(option)
	if err != nil {
		return c, err
	}
	switch {
	case c.Takes(t):
	case c == microkernel.ComputeInt8:
		return microkernel.ComputeF32, nil // weights that are not quantized have no integers
	default:
		return defaultCompute("", t, h) // the others as ever
	}
	return c, nil
}

// checkCompute refuses bf16, and long blocks of activations, where the model or the CPU has none.
func (h host) checkCompute(option string, s plans.ModelShape) error {
	switch option {
	case microkernel.ComputeInt8Superblock.String():
		return h.checkLong(s)
	case microkernel.ComputeBF16.String():
	default:
		return nil
	}
	if !has(s, microkernel.BF16) {
		return fmt.Errorf("compute %s is for models with bf16 weights, and %s has none: leave it out",
			option, s.Title())
	}
	if !h.hasPairs() {
		return fmt.Errorf("compute %s needs a dot product of bfloat16 (avx512_bf16, or bf16 on arm64), and %s "+
			"on this CPU (%s) has none: leave it out", option, h.isa, h.features)
	}
	return nil
}

// Service returns the ranks and PUs of the default plan without making the plan.
func Service(p *profiles.Profile, o Options) (plans.ServiceConfig, error) { return o.service(p) }

// service is the service configuration that the options ask for.
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
		pus = nil
		for _, r := range ranks {
			pus = append(pus, r.PUs...)
		}
		slices.Sort(pus)
	}
	return plans.NewService(ranks, pus, pus)
}

// ranks divides the PUs. Fewer threads than cores do not change where ranks are: they are made of
// the whole machine, each on a node of its own where there are enough, and keep their first PUs
// with the least load, one rank after the other.
func (o Options) ranks(p *profiles.Profile, pus plans.PUSet) ([]plans.Rank, error) {
	cores := plans.PUSet(p.CorePUs())
	if o.TP <= 1 || o.TP > len(pus) || len(pus) >= len(cores) {
		return MakeRanks(p, pus, max(1, o.TP))
	}
	ranks, err := MakeRanks(p, cores, o.TP)
	if err != nil {
		return nil, err
	}
	keep := FirstOfEach(ranks, p.ByLoad(cores, o.Load), len(pus))
	for i := range ranks {
		ranks[i].PUs = ranks[i].PUs.Intersect(keep)
		ranks[i].NUMANode = commonNode(p.Machine, ranks[i].PUs)
	}
	return ranks, nil
}

// pus returns the PUs of the workers.
func (o Options) pus(p *profiles.Profile) (plans.PUSet, error) {
	usable := p.UsablePUs()
	switch {
	case o.Threads < 0:
		return nil, fmt.Errorf("%d threads; give at least 1, or 0 for one per core", o.Threads)
	case len(usable) == 0:
		return nil, fmt.Errorf("%w: this process may use no PU", plans.ErrForeignHost)
	case o.Threads > len(usable):
		return nil, fmt.Errorf("%w: %d threads do not fit the %d PUs that may be used (%s)", plans.ErrForeignHost,
			o.Threads, len(usable), plans.PUSet(usable))
	}
	return p.PickPUs(o.Threads, o.Load), nil
}

// commonNode is the NUMA node that holds all PUs, -1 when there is none.
func commonNode(m *topotree.Machine, pus plans.PUSet) int {
	return m.CommonNode(topotree.NewCPUSet(pus...))
}
