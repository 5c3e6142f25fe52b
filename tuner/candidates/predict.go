package candidates

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/model/modelshape"
	"sandwich/topotree"
)

// nearCeiling is the assumed fraction of the ceiling that the default schedules reach, for every
// instruction set, type and configuration.
const nearCeiling = 0.8

// Calibrate sets the fractions of the ceilings that products of some weight types, and attention
// under "", reach. Others keep the assumed fraction.
func (p *Predictor) Calibrate(near map[string]roofline.Efficiency) { p.near = near }

func (p *Predictor) nearOf(weight string) roofline.Efficiency {
	if n, ok := p.near[weight]; ok {
		return n
	}
	return AssumedNear()
}

// AssumedNear returns the fractions of the ceilings that kernels are assumed to reach without a
// measurement.
func AssumedNear() roofline.Efficiency {
	return roofline.Efficiency{Peak: nearCeiling, Read: nearCeiling}
}

// Pace returns the bounds of ops of an arithmetic on some PUs.
func (p *Predictor) Pace(compute string, pus topotree.CPUSet) roofline.Limits {
	return roofline.Limits{Peak: p.peaksOf(pus)[slices.Index(p.types, compute)], Read: p.read(pus, nil),
		Alone: p.alone(pus, nil)}
}

// Product returns the seconds of C[M,N] = A[M,K] W[N,K]^T on some PUs, without the barrier after
// it.
func (p *Predictor) Product(m int, key plans.WeightKey, compute string, pus topotree.CPUSet) float64 {
	return p.Pace(compute, pus).Seconds(p.ProductStep(m, key), p.nearOf(key.Type))
}

// ProductStep returns a product as part of a forward: its weights are read from memory, the rest is
// in caches. The weights are unpacked as in the schedules of the plan's prefill.
func (p *Predictor) ProductStep(m int, key plans.WeightKey) roofline.Step {
	values := float64(key.N) * float64(key.K)
	s := roofline.Step{Work: roofline.Work{FLOP: 2 * values * float64(m), Bytes: values * roofline.Bits(key.Type) / 8}}
	if schedule, ok := p.plan.Prefill.Lookup(key, m); ok {
		s.Unpacked = values * float64(schedule.Unpackings(m))
	}
	return s
}

// Predictor estimates the duration of forwards of a model on a machine under service
// configurations: every op at the ceiling of its arithmetic, a barrier after each op, and two
// all-reduces per layer. It must not be used concurrently.
type Predictor struct {
	machine  *roofline.Machine
	site     *site
	capacity *capacity
	shape    plans.ModelShape
	plan     *plans.Plan // types and paths of the weights; its service configuration is ignored
	model    *model.Model
	isa      string
	types    []string
	ops      int

	local   map[string]float64 // bandwidths by set of PUs
	singles map[string]float64 // sum of the bandwidths of single PUs
	peaks   map[string][]float64
	waits   map[string]float64
	caches  map[string][]roofline.Cache
	near    map[string]roofline.Efficiency // measured fractions of the ceilings by weight type
	works   map[shareKey]*work
	sums    map[sumKey]float64
}

type sumKey struct {
	bytes int64
	ranks int
}

// NewPredictor returns a predictor for a profile that Complete filled up and a model whose weights
// have the types and paths of a plan. If m is nil, it uses the plan's model shape, which has no
// windows.
func NewPredictor(p *profiles.Profile, plan *plans.Plan, m *model.Model, o Options) (*Predictor, error) {
	if m == nil {
		var err error
		if m, err = modelshape.Outline(plan.Model); err != nil {
			return nil, fmt.Errorf("predicting forwards: %w", err)
		}
	}
	if _, err := cost.NewWork(m, plan); err != nil {
		return nil, fmt.Errorf("predicting forwards: %w", err)
	}
	return &Predictor{machine: roofline.NewMachine(p), site: newSite(p), capacity: newCapacity(p, plan.Model, o),
		shape: plan.Model, plan: plan, model: m, isa: plan.Widest(), types: plan.Arithmetics(), ops: len(m.Ops),
		local: map[string]float64{}, singles: map[string]float64{}, peaks: map[string][]float64{},
		waits: map[string]float64{}, caches: map[string][]roofline.Cache{}, works: map[shareKey]*work{},
		sums: map[sumKey]float64{}}, nil
}

// Bytes returns the bytes of a configuration on each memory node.
func (p *Predictor) Bytes(c *Config) map[int]int64 {
	out, err := p.capacity.bytes(c)
	if err != nil {
		return nil
	}
	return out
}

// Cost estimates the duration of forwards under one configuration. It implements replay.Cost.
type Cost struct {
	of     *Predictor
	phases [2]phase // prefill, decode
	memo   map[forwardKey]float64
}

// phase holds what determines the cost of forwards of a phase.
type phase struct {
	ranks   []pace // distinct ranks
	degree  int
	barrier float64
}

// pace is a rank's share of the model and the rates at which it works.
type pace struct {
	work  *work
	peaks []float64 // by type
	read  float64
	alone float64 // sum of what its PUs read when each runs alone, in B/s; 0: not requested
	// caches hold the activations; empty if the profile has no cache figures, and then activations
	// cost nothing.
	caches []roofline.Cache
}

// Cost returns the cost of a configuration. It fails if the model cannot be divided among its
// ranks.
func (p *Predictor) Cost(c *Config) (*Cost, error) {
	shares, err := p.shape.Cut(c.weights())
	if err != nil {
		return nil, err
	}
	out := &Cost{of: p, memo: map[forwardKey]float64{}}
	for i, set := range []topotree.CPUSet{c.Prefill, c.Decode} {
		out.phases[i] = p.phase(c, shares, set)
		for _, r := range out.phases[i].ranks {
			if r.work.err != nil {
				return nil, r.work.err
			}
		}
	}
	return out, nil
}

// phase returns the phase of a configuration with the given active PUs.
func (p *Predictor) phase(c *Config, shares []plans.Share, active topotree.CPUSet) phase {
	out := phase{degree: len(c.Ranks), barrier: p.barrier(active)}
	reads, peaks := p.reads(c, active), p.peaksOfRanks(c, active)
	for i := range c.Ranks {
		pus := c.Ranks[i].PUs.Intersect(active)
		next := pace{work: p.work(shares[i], len(shares)), peaks: peaks[i], read: reads[i],
			alone: p.alone(pus, c.Ranks[i].Nodes), caches: p.cachesOf(pus)}
		known := false
		for _, old := range out.ranks {
			known = known || old.same(next)
		}
		if !known {
			out.ranks = append(out.ranks, next)
		}
	}
	return out
}

func (a pace) same(b pace) bool {
	if a.work != b.work || !near(a.read, b.read) || !near(a.alone, b.alone) || len(a.caches) != len(b.caches) {
		return false
	}
	for i := range a.caches {
		if a.caches[i].Bytes != b.caches[i].Bytes || !near(a.caches[i].Read, b.caches[i].Read) {
			return false
		}
	}
	for i := range a.peaks {
		if !near(a.peaks[i], b.peaks[i]) {
			return false
		}
	}
	return true
}

// near reports whether two figures differ only by rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(a+b) }

// peaksOfRanks returns the peaks of each rank by type. Together they do not exceed the peaks of all
// active PUs, because figures by number of PUs are not linear, and dividing PUs makes none faster.
func (p *Predictor) peaksOfRanks(c *Config, active topotree.CPUSet) [][]float64 {
	all := p.peaksOf(active)
	if len(c.Ranks) == 1 {
		return [][]float64{all}
	}
	out := make([][]float64, len(c.Ranks))
	sum := make([]float64, len(p.types))
	for i, r := range c.Ranks {
		out[i] = slices.Clone(p.peaksOf(r.PUs.Intersect(active)))
		for t, v := range out[i] {
			sum[t] += v
		}
	}
	for t := range sum {
		for i := range out {
			if sum[t] > all[t] {
				out[i][t] *= all[t] / sum[t]
			}
		}
	}
	return out
}

func (p *Predictor) peaksOf(set topotree.CPUSet) []float64 {
	key := set.Key()
	if v, ok := p.peaks[key]; ok {
		return v
	}
	v := make([]float64, len(p.types))
	for i, typ := range p.types {
		v[i] = p.machine.Peak(set, roofline.Path{ISA: p.isa, Type: typ}).Value
	}
	p.peaks[key] = v
	return v
}

// cachesOf returns the caches of a set of PUs.
func (p *Predictor) cachesOf(set topotree.CPUSet) []roofline.Cache {
	key := set.Key()
	v, ok := p.caches[key]
	if !ok {
		v = p.machine.Limits(set, roofline.Path{ISA: p.isa, Type: p.types[0]}).Caches
		p.caches[key] = v
	}
	return v
}

// barrier returns the seconds of a barrier of all active PUs. It does not depend on the degree,
// because ranks synchronize twice per layer.
func (p *Predictor) barrier(active topotree.CPUSet) float64 {
	key := active.Key()
	v, ok := p.waits[key]
	if !ok {
		v = p.machine.Barrier(active).Value
		p.waits[key] = v
	}
	return v
}

// forwardKey identifies forwards of equal cost.
type forwardKey struct {
	phase   int
	rows    int
	heads   int
	context int // positions before the rows, in buckets
}

// contextBucket is the resolution in positions of a forward's context.
const contextBucket = 64

// Prefill implements replay.Cost.
func (c *Cost) Prefill(pos, n int, head bool) time.Duration {
	heads := 0
	if head {
		heads = 1
	}
	return duration(c.seconds(forwardKey{0, n, heads, bucket(pos)}))
}

// Decode implements replay.Cost.
func (c *Cost) Decode(context []int) time.Duration {
	sum := 0
	for _, n := range context {
		sum += n
	}
	return duration(c.seconds(forwardKey{1, len(context), len(context), bucket(sum / max(1, len(context)))}))
}

// Ops implements replay.Cost.
func (c *Cost) Ops() int { return c.of.ops }

// PrefillSeconds returns the seconds of a prompt of n tokens that is computed in one forward.
func (c *Cost) PrefillSeconds(n int) float64 { return c.seconds(forwardKey{0, n, 1, 0}) }

// DecodeSeconds returns the seconds of one step of the given number of sequences with the given
// number of positions before each.
func (c *Cost) DecodeSeconds(rows, context int) float64 {
	return c.seconds(forwardKey{1, rows, rows, bucket(context)})
}

func bucket(n int) int { return (n + contextBucket/2) / contextBucket }

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func (c *Cost) seconds(k forwardKey) float64 {
	s, ok := c.memo[k]
	if !ok {
		s = c.of.forward(&c.phases[k.phase], k)
		c.memo[k] = s
	}
	return s
}

// forward returns the seconds of the slowest rank and of the barriers and all-reduces.
func (p *Predictor) forward(ph *phase, k forwardKey) float64 {
	slowest := 0.0
	for i := range ph.ranks {
		r := &ph.ranks[i]
		sum := 0.0
		for _, t := range p.tasks(r.work, k) {
			pace := roofline.Limits{Peak: r.peaks[t.typ], Read: r.read, Alone: r.alone, Caches: r.caches}
			sum += pace.Seconds(t.Step, p.nearOf(t.weight))
		}
		slowest = math.Max(slowest, sum)
	}
	seconds := slowest + float64(p.ops)*ph.barrier
	if ph.degree > 1 {
		seconds += 2 * float64(p.shape.Layers) * p.sum(int64(k.rows)*int64(p.shape.Hidden)*4, ph.degree)
	}
	return seconds
}

// sum returns the seconds of one all-reduce.
func (p *Predictor) sum(bytes int64, ranks int) float64 {
	k := sumKey{bytes, ranks}
	v, ok := p.sums[k]
	if !ok {
		v = p.machine.AllReduce(bytes, ranks).Value
		p.sums[k] = v
	}
	return v
}
