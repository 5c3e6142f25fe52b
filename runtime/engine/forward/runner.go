// Package forward runs the forwards of one model. A Runner owns what the model needs: weights, KV
// cache, worker pool and executors.
package forward

import (
	"context"
	"sync/atomic"
	"time"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// Options configures what a Runner loads, how much it can hold at once, and how it replans.
type Options struct {
	exec.Options

	// Replan returns a plan for fewer PUs, when some PUs of the plan become unavailable while
	// serving. With nil, the remaining workers share the slices of the plan's schedules.
	Replan func(service *plans.ServiceConfig) (*plans.Plan, error)

	// SharedWith, if not nil, is an open runner whose weights the new one uses
	// (exec.Options.SharedWeights). It must be closed after the new one, and the two must not run
	// forwards at the same time.
	SharedWith *Runner
}

// Runner runs the forwards of one model: it has an assembly of weights, KV cache and workers, and
// one executor per phase. Forward chooses the executor and makes the hot switch. Methods must not
// be called concurrently, except where they say so.
type Runner struct {
	Model *model.Model
	Plan  *plans.Plan

	assembly *exec.Assembly
	sets     bufferSets   // activations: the assembly's, and those that Reserve and ReserveMore allocate
	use      int          // index of the set of the next forward
	phases   [2]phaseTeam // by phase.Phase
	last     *exec.Executor
	active   []int // workers of the last forward
	replans  []replanned
	placed   []placed // placement of memory at the start

	replanner func(service *plans.ServiceConfig) (*plans.Plan, error)
}

// bufferSets has the sets of activations that are allocated; the others are nil.
type bufferSets [2 * sched.Sets]atomic.Pointer[exec.Buffers]

// phaseTeam is the executor of a phase and the workers that run it.
type phaseTeam struct {
	executor *exec.Executor // in use: planned, or one for fewer workers
	planned  *exec.Executor // of the plan
	workers  []int          // of the plan
	active   []int          // workers in use
}

// Open loads a model under a plan. It returns the errors of exec.Open, which ctx cancels, and an
// error for a weight without a schedule.
func Open(ctx context.Context, o Options) (*Runner, error) {
	if o.SharedWith != nil {
		o.Options.SharedWeights = o.SharedWith.assembly
	}
	a, err := exec.Open(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	r := &Runner{Model: a.Model, Plan: a.Plan, assembly: a, replanner: o.Replan}
	r.sets[0].Store(a.Buffers)
	if err := r.compile(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// compile compiles the executors of both phases.
func (r *Runner) compile() (err error) {
	workers := r.assembly.Workers
	for i, p := range []*plans.Phase{&r.Plan.Prefill, &r.Plan.Decode} {
		ph := &r.phases[i]
		if ph.workers, err = workers.On(p.PUs.Slice()); err != nil {
			return err
		}
		if ph.planned, err = r.assembly.Compile(p, workers); err != nil {
			return err
		}
		ph.executor, ph.active = ph.planned, ph.workers
	}
	return r.notePlaces()
}

// Reserve allocates all sets of activations that a scheduler may use. An engine calls it at its
// start, so that serving allocates no buffers. It must not be called inside Lead.
func (r *Runner) Reserve(ctx context.Context) error {
	for i := range r.sets[:sched.Sets] {
		if r.sets[i].Load() != nil {
			continue
		}
		b, err := r.assembly.NewBuffers()
		if err != nil {
			return err
		}
		r.sets[i].Store(b)
		if err := r.assembly.Touch(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// ReserveMore allocates as many sets again, for a second lane on the cores, unless they exist. On
// an error there may be fewer.
func (r *Runner) ReserveMore() error {
	for i := sched.Sets; i < len(r.sets); i++ {
		if r.sets[i].Load() != nil {
			continue
		}
		b, err := r.assembly.NewBuffers()
		if err != nil {
			return err
		}
		r.sets[i].Store(b)
	}
	return nil
}

// Lead runs loop on a thread that is worker 0, which starts forwards without a thread wake-up.
// Forward must be called inside loop, between l.Take and l.Give.
func (r *Runner) Lead(loop func(l *pool.Leader)) { r.assembly.Workers.Lead(loop) }

// Moves reports whether the runner's engine moves the workers of the pool to other PUs. Of the
// users of a pool one does.
func (r *Runner) Moves() bool { return r.assembly.Workers.Moves() }

// Forward runs a batch from op index `from` and returns the next index: Ops() when it is complete,
// less when the gate halted it. If the batch has another phase than the last one, Forward first
// makes the hot switch: it changes the active workers and the schedules, and moves no weights. To
// resume a halted forward, call Forward with the same batch, the same set of activations and the
// returned index; forwards on another set may run in between.
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
	p.executor.Use(r.Buffers())
	return p.executor.Run(l, b, from, gate)
}

// Cut divides the ops of the next forward on the set in use into steps, by op; the forward may halt
// after each step. The indices of Forward then count steps. A resumed forward keeps its steps.
func (r *Runner) Cut(steps []uint16) { r.Buffers().Cut(steps) }

// HaltsAfter reports whether a prefill can halt after op i without a cut, which is the same for all
// teams. It may be called concurrently with everything.
func (r *Runner) HaltsAfter(i int) bool { return r.phases[0].planned.HaltsAfter(i) }

// Use selects the set of activations of the following forwards: set 0, or any set after Reserve.
func (r *Runner) Use(set int) { r.use = set }

// Buffers returns the activations of the following forwards.
func (r *Runner) Buffers() *exec.Buffers { return r.sets[r.use].Load() }

// Span returns when the last worker began the first op of the last Forward, and when its last op
// ended. The time between the end of one forward and the begin of the next is the pause of a hot
// switch.
func (r *Runner) Span() (began, ended time.Time) {
	return r.last.Span(r.active)
}

// Ops returns the number of ops of a forward.
func (r *Runner) Ops() int { return len(r.Model.Ops) }

// Logits returns the logits of LogitRows[i] of the last complete Forward. They are valid until the
// next one.
func (r *Runner) Logits(i int) []float32 { return r.last.Logits(i) }

// Assembly returns the loaded model with its workers and KV cache.
func (r *Runner) Assembly() *exec.Assembly { return r.assembly }

// Steps returns the number of steps of the last forward, by which a caller without a gate tells
// that it is complete.
func (r *Runner) Steps() int { return r.last.Steps() }

// Blocks returns the number of KV blocks of the cache.
func (r *Runner) Blocks() int { return r.assembly.Blocks }

// NewCache returns the block allocator of the KV cache with all blocks free, for a caller without a
// scheduler. Only one allocator may be in use.
func (r *Runner) NewCache() *kvcache.Cache { return r.assembly.NewCache() }

// Pool returns the worker pool, for its statistics.
func (r *Runner) Pool() *pool.Pool { return r.assembly.Workers.Pool }

// Memory is the memory of a runner outside the Go heap.
type Memory struct {
	Weights, KV, Activations int64         // bytes; KV includes recurrent states
	Packing                  time.Duration // time that packing the weights took
	// State is the size in bytes of the recurrent states of one sequence, 0 if the model has none.
	// Copies is the number of cached states that fit in addition to those of running sequences.
	State  int64
	Copies int
}

// Memory returns the memory that the runner uses. It may be called concurrently with all methods
// but Close.
func (r *Runner) Memory() Memory {
	a := r.assembly
	m := Memory{Weights: a.Weights.Bytes(), KV: int64(a.KV.Bytes() + a.States.Bytes()), Packing: a.Packing}
	m.State, m.Copies = a.States.Each(), a.Copies()
	for _, set := range r.Activations() {
		m.Activations += int64(set.Bytes())
	}
	return m
}

// Activations returns the sets of activations that are allocated.
func (r *Runner) Activations() (list []*exec.Buffers) {
	for i := range r.sets {
		if set := r.sets[i].Load(); set != nil {
			list = append(list, set)
		}
	}
	return list
}

// Close stops the workers and frees the memory of the runner, which must not be in use.
func (r *Runner) Close() {
	for _, p := range r.phases {
		if p.planned != nil {
			p.planned.Close()
		}
	}
	for _, old := range r.replans {
		closeAll(old.executors)
	}
	for i := range r.sets {
		if set := r.sets[i].Load(); i > 0 && set != nil { // the assembly frees the first one
			_ = r.assembly.FreeBuffers(set) // an error leaves nothing to do
		}
	}
	r.assembly.Close()
}
