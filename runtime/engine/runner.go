package engine

import (
	"context"
	"time"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// RunnerOptions say what a Runner loads, how much it must hold at once, and how it plans again.
type RunnerOptions struct {
	exec.Options

	// Replan makes the schedules for fewer PUs than the plan's, where the system takes some away
	// while serving; nil: the plan's are kept, and their slices handed out to whoever is left.
	Replan func(service *plans.ServiceConfig) (*plans.Plan, error)

	// Beside, where it is there, lends what it has loaded (exec.Options.Beside), and outlives the
	// runner. While one of them runs forwards the other rests.
	Beside *Runner
}

// Runner runs one model: the assembly of what it needs, and one executor a phase over it. Forward
// picks the phase and makes the hot switch. It serves one caller at a time.
type Runner struct {
	Model *model.Model
	Plan  *plans.Plan

	assembly *exec.Assembly
	sets     [sched.Sets]*exec.Buffers // activations: the assembly's, and those that Reserve makes
	use      int                       // the set of the next forward
	phases   [2]phaseTeam              // by phase.Phase
	last     *exec.Executor
	active   []int // workers of the last forward
	again    []replanned
	placed   []placed // where memory lay at the start

	replanner func(service *plans.ServiceConfig) (*plans.Plan, error)
}

// phaseTeam is the executor of a phase and the workers that run it.
type phaseTeam struct {
	executor *exec.Executor // the plan's, or one for fewer workers
	planned  *exec.Executor // the plan's
	workers  []int          // of the plan
	active   []int          // of them, those that the system left
}

// Open loads the model under its plan. Errors are those of exec.Open, which ctx ends, and a weight
// without a schedule.
func Open(ctx context.Context, o RunnerOptions) (*Runner, error) {
	if o.Beside != nil {
		o.Options.SharedWeights = o.Beside.assembly
	}
	a, err := exec.Open(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	r := &Runner{Model: a.Model, Plan: a.Plan, assembly: a, sets: [sched.Sets]*exec.Buffers{a.Buffers},
		replanner: o.Replan}
	if err := r.compile(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// compile makes the executors of both phases.
func (r *Runner) compile() (err error) {
	workers := r.assembly.Workers
	for i, p := range []*plans.Phase{&r.Plan.Prefill, &r.Plan.Decode} {
		ph := &r.phases[i]
		if ph.workers, err = workers.On(p.PUs); err != nil {
			return err
		}
		if ph.planned, err = r.assembly.Compile(p, workers); err != nil {
			return err
		}
		ph.executor, ph.active = ph.planned, ph.workers
	}
	return r.notePlaces()
}

// Reserve makes every set of activations that a scheduler may name: an engine does so at its
// start, since serving allocates no buffers. Not to be called inside Lead.
func (r *Runner) Reserve(ctx context.Context) (err error) {
	for i := range r.sets {
		if r.sets[i] != nil {
			continue
		}
		if r.sets[i], err = r.assembly.NewBuffers(); err != nil {
			return err
		}
		if err = r.assembly.Touch(ctx, r.sets[i]); err != nil {
			return err
		}
	}
	return nil
}

// Lead runs loop on worker 0's own thread, from where forwards reach the other workers without
// waking a thread. Forward may be called only from inside it.
func (r *Runner) Lead(loop func(l *pool.Leader)) { r.Pool().Lead(loop) }

// Forward runs a batch from op index `from` and returns the next index: Ops() when done, less when
// the gate halted it. A batch of the other phase than the last one makes the hot switch first: it
// changes which workers are active and which schedules run, and moves no weight. To go on with a
// halted forward, call it with the same batch, set of activations and the index it returned, at
// once or when others have run on another set.
func (r *Runner) Forward(l *pool.Leader, b *kvcache.Batch, from int, gate exec.Gate) (next int, err error) {
	p := &r.phases[1]
	if b.Prefill {
		p = &r.phases[0]
		p.executor.Prewarm(r.phases[1].executor)
	}
	if _, err := l.SetActive(p.active); err != nil {
		return from, err
	}
	r.last, r.active = p.executor, p.active
	p.executor.Use(r.sets[r.use])
	return p.executor.Run(l, b, from, gate)
}

// Cut cuts the ops of the forward that begins next on the set in use into steps, each a place to
// halt: Forward then counts steps, of which a resumed forward has as many as it began with.
func (r *Runner) Cut(steps []uint16) { r.sets[r.use].Cut(steps) }

// meets says whether a prefill can halt behind op i where nothing is cut.
func (r *Runner) meets(i int) bool { return r.phases[0].executor.HaltsAfter(i) }

// Use names the set of activations of the following forwards: the first one, or any of them
// after Reserve.
func (r *Runner) Use(set int) { r.use = set }

// Span returns when the last of the workers of the last Forward began its first op, and when its
// last op ended: the pause of a hot switch is between two of them.
func (r *Runner) Span() (began, ended time.Time) {
	return r.last.Span(r.active)
}

// Ops is the number of ops of a forward.
func (r *Runner) Ops() int { return len(r.Model.Ops) }

// Logits returns the logits of LogitRows[i] of the last Forward that ended.
func (r *Runner) Logits(i int) []float32 { return r.last.Logits(i) }

// Blocks is the number of KV blocks of all sequences together.
func (r *Runner) Blocks() int { return r.assembly.Blocks }

// NewCache makes the bookkeeping of the KV cache, all of it idle: for callers without a scheduler,
// of whom one at a time may use the runner.
func (r *Runner) NewCache() *kvcache.Cache { return r.assembly.NewCache() }

// Pool is the worker pool, for its statistics.
func (r *Runner) Pool() *pool.Pool { return r.assembly.Workers.Pool }

// Memory is what the runner holds off the Go heap.
type Memory struct {
	Weights, KV, Activations int64 // bytes; states of layers that have some are of KV
	Packing                  time.Duration
	// Of a model whose layers have a state: its bytes for one sequence, and how many copies of
	// states there is room for beside those of the sequences.
	State  int64
	Copies int
}

// Memory reports the sizes of what was loaded.
func (r *Runner) Memory() Memory {
	a := r.assembly
	m := Memory{Weights: a.Weights.Bytes(), KV: int64(a.KV.Bytes() + a.States.Bytes()), Packing: a.Packing}
	m.State, m.Copies = a.States.Each(), a.Copies()
	for _, set := range r.sets {
		if set != nil {
			m.Activations += int64(set.Bytes())
		}
	}
	return m
}

// Close ends the workers and frees everything. Nothing of the runner may be in use.
func (r *Runner) Close() {
	for _, p := range r.phases {
		if p.planned != nil {
			p.planned.Close()
		}
	}
	for _, old := range r.again {
		closeAll(old.executors)
	}
	if r.sets[1] != nil {
		r.sets[1].Free()
	}
	r.assembly.Close()
}
