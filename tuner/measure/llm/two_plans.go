package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/plans/gate"
	"sandwich/runtime/device"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

const (
	caseDepth    = 64                    // positions before the one that a sequence decodes
	sampleLength = 40 * time.Millisecond // minimum, to average over the timer ticks of the system
	maxForwards  = 64                    // per sample
	waitingSpin  = 50 * time.Microsecond
)

// CaseTest returns a row of a gate as a Test.
func CaseTest(c gate.Case) Test {
	if c.Prefill {
		return Test{Name: c.Name(), Prefill: true, Tokens: c.Rows, Batch: 1}
	}
	return Test{Name: c.Name(), Tokens: 2*caseDepth + 1, Batch: c.Rows}
}

// TwoPlans holds two plans of one model ready to run, over one copy of the weights if the plans
// allow that.
type TwoPlans struct {
	sides  [2]onePlan
	copies []*exec.Assembly
	pools  []*exec.Workers
	times  map[gate.Case]int // forwards per sample

	devices  map[string]device.Device           // by ID
	onDevice map[*exec.Assembly]*offload.Runner // copies on the device of a plan
}

// onePlan is a plan compiled over an assembly.
type onePlan struct {
	plan   *plans.Plan
	on     *exec.Assembly
	phases [phase.Count]*exec.Executor
	active [phase.Count][]int

	onDevice *offload.Runner   // of the assembly; nil: none
	placed   [phase.Count]bool // the phases that the device runs
}

// OpenTwoPlans loads the model once for both plans, or twice if they cannot share one copy of the
// weights.
func OpenTwoPlans(ctx context.Context, file *gguf.File, a, b *plans.Plan, cases []gate.Case) (t *TwoPlans, err error) {
	blocks, rows := 1, 1
	for _, c := range cases {
		n := kvcache.BlocksFor(c.Rows)
		if !c.Prefill {
			n, rows = c.Rows*kvcache.BlocksFor(caseDepth+1), max(rows, c.Rows)
		}
		blocks = max(blocks, n)
	}
	t = &TwoPlans{times: map[gate.Case]int{}, devices: map[string]device.Device{},
		onDevice: map[*exec.Assembly]*offload.Runner{}}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	groups := [][]*plans.Plan{{a, b}}
	if !shareAssembly(a, b) {
		groups = [][]*plans.Plan{{a}, {b}}
	}
	if err := fitsInMemory(groups, blocks, rows); err != nil {
		return t, err
	}
	for _, g := range groups {
		if err := t.load(ctx, file, g, blocks, rows); err != nil {
			return t, err
		}
	}
	for i, p := range []*plans.Plan{a, b} {
		if err := t.sides[i].compile(p, t.copies[min(i, len(t.copies)-1)]); err != nil {
			return t, err
		}
		if err := t.place(ctx, &t.sides[i], rows); err != nil {
			return t, err
		}
	}
	for i := range t.sides {
		t.sides[i].onDevice = t.onDevice[t.sides[i].on]
	}
	return t, nil
}

// place copies the model to the device of a plan, if it has one. If the device cannot be used and
// the plan allows it, the cores run its phases.
func (t *TwoPlans) place(ctx context.Context, s *onePlan, logitRows int) error {
	id, phases, optional := s.plan.Device()
	if id == "" {
		return nil
	}
	if err := t.offload(ctx, id, s.on, logitRows); err != nil {
		if optional {
			return nil
		}
		return err
	}
	for _, p := range phases {
		s.placed[p] = true
	}
	return nil
}

// offload copies an assembly to a device.
func (t *TwoPlans) offload(ctx context.Context, id string, a *exec.Assembly, logitRows int) (err error) {
	d := t.devices[id]
	if d == nil {
		if d, err = device.Open(ctx, id); err != nil {
			return err
		}
		t.devices[id] = d
	}
	if t.onDevice[a] != nil {
		return nil
	}
	r, err := offload.Open(offload.Options{Device: d, Assembly: a, Rows: a.Rows(), LogitRows: logitRows, Sets: 1,
		Context: a.Blocks * kvcache.BlockTokens, ExpertsOnCores: a.Model.Experts.Count > 0})
	if err == nil {
		t.onDevice[a] = r
	}
	return err
}

// forward runs a batch on the device or on the cores, as the plan says.
func (s *onePlan) forward(ctx context.Context, l *pool.Leader, p phase.Phase, b *kvcache.Batch) (err error) {
	if s.placed[p] {
		_, err = s.onDevice.Forward(ctx, 0, b, 0, 0, nil, &offload.Cores{Buffers: s.on.Buffers,
			Run: func(b *kvcache.Batch, from int, gate exec.Gate) (int, error) {
				return s.phases[p].Run(l, b, from, gate)
			}})
		return err
	}
	if s.onDevice != nil {
		s.onDevice.CoresWrite(b)
	}
	_, err = s.phases[p].Run(l, b, 0, nil)
	return err
}

// shareAssembly reports whether one assembly can run both plans with the same weights, cache and
// worker code.
func shareAssembly(a, b *plans.Plan) bool {
	return exec.SharesWeights(a, b) && a.KV == b.KV && a.ISAOf("") == b.ISAOf("") &&
		reflect.DeepEqual(a.Classes, b.Classes)
}

// ErrOutOfMemory is returned if memory cannot hold two plans that share no copy of the weights.
var ErrOutOfMemory = errors.New("not enough memory for two plans")

// fitsInMemory returns an error if the plans do not fit in memory together, so that this host
// cannot compare them.
func fitsInMemory(groups [][]*plans.Plan, blocks, rows int) error {
	need := int64(0)
	for _, g := range groups {
		list, err := exec.ForecastMemory(exec.Options{Plan: g[0], Blocks: blocks, LogitRows: rows, Sequences: rows})
		if err != nil {
			return err
		}
		for _, f := range list {
			need += f.Total(1)
		}
	}
	if free := mem.Available(); free >= 0 && need > free {
		return fmt.Errorf("%w: the two plans need %s (their weights in %d copies) and %s is free; measure on a larger "+
			"runner", ErrOutOfMemory, mem.FormatBytes(need), len(groups), mem.FormatBytes(free))
	}
	return nil
}

// load loads the model for plans that share it.
func (t *TwoPlans) load(ctx context.Context, file *gguf.File, list []*plans.Plan, blocks, rows int) error {
	first := *list[0]
	w := exec.PlanWorkers(&first)
	for _, p := range list[1:] {
		first.Chunk = max(first.Chunk, p.Chunk)
		for pu := range p.PUs().All() {
			if !slices.Contains(w.PUs, pu) {
				w.PUs = append(w.PUs, pu)
			}
		}
	}
	w.Spin = waitingSpin
	workers, err := exec.NewWorkers(w)
	if err != nil {
		return err
	}
	t.pools = append(t.pools, workers)
	a, err := exec.Open(ctx, exec.Options{File: file, Plan: &first, Blocks: blocks, LogitRows: rows, Sequences: rows,
		Workers: workers})
	if err != nil {
		return err
	}
	t.copies = append(t.copies, a)
	return nil
}

func (s *onePlan) compile(p *plans.Plan, on *exec.Assembly) (err error) {
	s.plan, s.on = p, on
	for i, ph := range []*plans.Phase{phase.Prefill: &p.Prefill, phase.Decode: &p.Decode} {
		if s.active[i], err = on.Workers.On(ph.PUs.Slice()); err != nil {
			return err
		}
		if s.phases[i], err = on.Compile(ph, on.Workers); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the engines of both plans.
func (t *TwoPlans) Close() {
	for _, s := range t.sides {
		for _, e := range s.phases {
			if e != nil {
				e.Close()
			}
		}
	}
	for _, r := range t.onDevice {
		_ = r.Close() // the driver's process ends with the device
	}
	for _, d := range t.devices {
		_ = d.Close()
	}
	for _, a := range t.copies {
		a.Close()
	}
	for _, w := range t.pools {
		w.Close()
	}
}

// Warm runs a case under both plans and sets the number of forwards per sample, the same for both.
func (t *TwoPlans) Warm(ctx context.Context, c gate.Case) error {
	t.times[c] = 1
	fastest := time.Hour
	for range 2 { // the first time faults pages in
		for side := range t.sides {
			rate, err := t.Sample(ctx, side, c)
			if err != nil {
				return err
			}
			fastest = min(fastest, time.Duration(float64(c.Rows)/rate*float64(time.Second)))
		}
	}
	t.times[c] = int(min(maxForwards, max(1, sampleLength/max(fastest, 1))))
	return nil
}

// Sample runs a case under the baseline (side 0) or the candidate (1) and returns tokens per
// second.
func (t *TwoPlans) Sample(ctx context.Context, side int, c gate.Case) (rate float64, err error) {
	s := &t.sides[side]
	run, of := s.step, phase.Decode
	if c.Prefill {
		run, of = s.prompt, phase.Prefill
	}
	s.on.Workers.Pool.Lead(func(l *pool.Leader) {
		if _, err = l.SetActive(s.active[of]); err != nil {
			return
		}
		var took time.Duration
		if took, err = run(ctx, l, c.Rows, t.times[c]); err == nil {
			rate = float64(c.Rows*t.times[c]) / took.Seconds()
		}
	})
	return rate, err
}

// tokens returns the same tokens for both sides.
func (s *onePlan) tokens(n int) []int32 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(s.plan.Model.Vocab))
	}
	return out
}

// prompt reads prompts of n tokens, chunk by chunk or at once as the model requires, each from an
// empty cache.
func (s *onePlan) prompt(ctx context.Context, l *pool.Leader, n, times int) (took time.Duration, err error) {
	tokens, chunk := s.tokens(n), s.plan.Chunk
	if s.on.Model.WholeText() {
		chunk = n
	}
	for range times {
		cache := s.on.NewCache()
		seq := cache.Open(kvcache.Salt{})
		if !cache.Reserve(seq, n) {
			return 0, fmt.Errorf("a prompt of %d tokens does not fit the KV cache", n)
		}
		began := time.Now()
		for pos := 0; pos < n; pos += chunk {
			if err := context.Cause(ctx); err != nil {
				return 0, err
			}
			rows := min(chunk, n-pos)
			b := kvcache.Batch{Tokens: tokens[pos : pos+rows], Prefill: true}
			if pos+rows == n {
				b.LogitRows = []int32{int32(rows - 1)}
			}
			cache.Cover(seq, pos+rows)
			b.AddSpan(seq, kvcache.Span{Rows: rows, Pos: pos})
			if err := s.forward(ctx, l, phase.Prefill, &b); err != nil {
				return 0, err
			}
			cache.Advance(seq, rows)
		}
		took += time.Since(began)
	}
	return took, nil
}

// step decodes one token of n sequences after caseDepth positions each, times times.
func (s *onePlan) step(ctx context.Context, l *pool.Leader, n, times int) (time.Duration, error) {
	b := kvcache.Batch{Tokens: s.tokens(n)}
	cache := s.on.NewCache()
	for i := range n {
		seq := cache.Open(kvcache.Salt{})
		if !cache.Reserve(seq, caseDepth+1) {
			return 0, fmt.Errorf("%d sequences of %d tokens do not fit the KV cache", n, caseDepth+1)
		}
		cache.Advance(seq, caseDepth)
		cache.Cover(seq, caseDepth+1)
		b.AddSpan(seq, kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: caseDepth})
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	began := time.Now()
	for range times {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		if err := s.forward(ctx, l, phase.Decode, &b); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}
