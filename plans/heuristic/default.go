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
	SeqMax   int                  // 0: 2048, at most the model's context
	BatchMax int                  // 0: 16
}

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

// addDefaults adds the weights and the tables of the main class. Both phases get the same rules,
// since without measurements they differ by M only.
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

// table returns the rules of a table shape for the largest group of threads that shares such a
// product.
func (h host) table(c plans.TableShape) ([]plans.Rule, error) {
	t, err := microkernel.ParseWeightType(c.Type)
	if err != nil {
		return nil, err
	}
	h.Threads = c.Threads
	return h.rules(c.WeightKey, t, c.Compute)
}

// pathOf returns the compute path of a weight: that in the options, else the default.
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

// defaultCompute returns the default compute path of a weight type: int8 for quantized weights and
// bf16 for weights of that type if it is the faster path, else f32.
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
		return microkernel.ComputeF32, nil // not quantized
	default:
		return defaultCompute("", t, h) // a type without this path
	}
	return c, nil
}

// checkCompute rejects bf16 and int8-256 if the model has no weights for the path or the CPU no
// kernels.
func (h host) checkCompute(option string, s plans.ModelShape) error {
	switch option {
	case microkernel.ComputeInt8Superblock.String():
		return h.checkSuperblock(s)
	case microkernel.ComputeInt8K.String():
		return h.checkIntegers(s)
	case microkernel.ComputeBF16Tile.String():
		return h.checkTiles(s)
	case microkernel.ComputeBF16.String():
	default:
		return nil
	}
	if !has(s, microkernel.BF16) {
		return fmt.Errorf("compute %s is for models with bf16 weights, but %s has none: leave --compute out",
			option, s.Title())
	}
	if !h.hasPairs() {
		return fmt.Errorf("compute %s needs a dot product of bfloat16 (avx512_bf16, or bf16 on arm64), but %s "+
			"on this CPU (%s) has none: leave --compute out", option, h.isa, h.features)
	}
	return nil
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
		pus = nil
		for _, r := range ranks {
			pus = append(pus, r.PUs...)
		}
		slices.Sort(pus)
	}
	return plans.NewService(ranks, pus, pus)
}

// ranks divides the PUs among ranks. Fewer threads than cores do not move ranks: ranks are made
// from all cores, each on its own node if there are enough, and then keep their PUs with the least
// load.
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
		return nil, fmt.Errorf("%d threads; use at least 1, or 0 for one per core", o.Threads)
	case len(usable) == 0:
		return nil, fmt.Errorf("%w: no PU is available to this process", plans.ErrForeignHost)
	case o.Threads > len(usable):
		return nil, fmt.Errorf("%w: %d threads are more than the %d usable PUs (%s)", plans.ErrForeignHost,
			o.Threads, len(usable), plans.PUSet(usable))
	}
	return p.PickPUs(o.Threads, o.Load), nil
}

// commonNode returns the NUMA node that holds all PUs, or -1.
func commonNode(m *topotree.Machine, pus plans.PUSet) int {
	return m.CommonNode(topotree.NewCPUSet(pus...))
}
