package engine

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// RunnerOptions say what a Runner loads and how much it must hold at once.
type RunnerOptions struct {
	File      *gguf.File
	Plan      *plans.Plan
	Blocks    int           // KV blocks of 64 positions
	LogitRows int           // most rows of a forward whose logits are wanted
	Spin      time.Duration // pool.Options.Spin
	Unpinned  bool          // workers are bound to nothing, so that a plan may have more of them than this machine has PUs
	Sync      exec.Sync     // how ranks wait for each other
	Progress  func(done, total int64)

	// Replan makes the schedules for fewer PUs than the plan's, where the system takes some away while serving; nil: the plan's are kept, and their
	// slices handed out to whoever is left.
	Replan func(service *plans.ServiceConfig) (*plans.Plan, error)
}

// Runner owns what one model needs to run: the packed weights (once), the KV cache, activations, the worker pool, and
// one executor a phase. Forward picks the phase and makes the hot switch. It serves one caller at a time.
type Runner struct {
	Model *model.Model
	Plan  *plans.Plan

	parts   *exec.Parts
	vec     rowMath
	pool    *pool.Pool
	weights *exec.Weights
	kv      exec.KVStores
	sets    [2]*exec.Buffers // activations; the second set is made when a halted forward first has to be kept
	use     int              // the set of the next forward
	held    bool             // the other set keeps a halted forward
	rows    bufferRows
	phases  [2]phase // prefill, decode
	last    *exec.Executor
	active  []int   // workers of the last forward
	ranks   [][]int // workers of each rank
	again   []replanned
	config  exec.Config // of the executors, but for their phase
	packing time.Duration
	placed  []placed // where memory lay at the start

	replanner func(service *plans.ServiceConfig) (*plans.Plan, error)
}

// bufferRows are the most rows of a forward, and the most whose logits are wanted.
type bufferRows struct{ all, logits int }

func (o *RunnerOptions) rows() bufferRows {
	return bufferRows{all: max(o.Plan.Chunk, o.LogitRows), logits: o.LogitRows}
}

func (r *Runner) newBuffers() (*exec.Buffers, error) {
	return exec.NewBuffers(r.parts, r.rows.all, r.rows.logits, r.weights.RoundedK())
}

type phase struct {
	executor *exec.Executor // the plan's, or one for fewer workers
	planned  *exec.Executor // the plan's
	workers  []int          // of the plan
	active   []int          // of them, those that the system left
}

// Open loads the model under its plan. Errors name what does not fit: the architecture, a weight without a schedule, a
// kernel this host cannot run, or memory with how much is missing.
func Open(o RunnerOptions) (*Runner, error) {
	m, err := model.Load(o.File)
	if err != nil {
		return nil, err
	}
	parts, err := exec.Divide(m, o.Plan)
	if err != nil {
		return nil, err
	}
	r := &Runner{Model: m, Plan: o.Plan, parts: parts, replanner: o.Replan}
	if err := r.checkMemory(o); err != nil {
		return nil, err
	}
	if err := r.open(o); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Runner) open(o RunnerOptions) error {
	pus, prefill, decode := workerSets(o.Plan.Prefill.PUs, o.Plan.Decode.PUs)
	var err error
	if r.pool, err = pool.New(pus, pool.Options{Pin: !o.Unpinned, Spin: o.Spin}); err != nil {
		return err
	}
	kernels, err := exec.NewKernels(exec.PlanISA(o.Plan), o.Plan)
	if err != nil {
		return err
	}
	r.vec = kernels.Vec
	groups, err := r.parts.Groups(r.pool, kernels.Vec)
	if err != nil {
		return err
	}
	r.ranks = rankWorkers(o.Plan, pus)
	if r.kv, err = exec.NewKVStores(r.parts, o.Plan.KV, o.Blocks); err != nil {
		return err
	}
	began := time.Now()
	if r.weights, err = exec.LoadWeights(r.parts, o.Plan, r.pool, o.Progress); err != nil {
		return err
	}
	r.packing = time.Since(began)
	r.rows = o.rows()
	if r.sets[0], err = r.newBuffers(); err != nil {
		return err
	}
	r.config = exec.Config{Parts: r.parts, Weights: r.weights, KV: r.kv, Buffers: r.sets[0], Pool: r.pool, Groups: groups, Sync: o.Sync}
	for i, p := range []struct {
		plan    *plans.Phase
		workers []int
	}{{&o.Plan.Prefill, prefill}, {&o.Plan.Decode, decode}} {
		e, err := exec.New(r.config.With(p.plan, kernels))
		if err != nil {
			return err
		}
		r.phases[i] = phase{executor: e, planned: e, workers: p.workers, active: p.workers}
	}
	exec.Touch(r.pool, r.config.Groups, r.kv.Memory)
	exec.Touch(r.pool, r.config.Groups, r.sets[0].Memory)
	return r.notePlaces()
}

// Reserve makes the second set of activations, which Hold would make when it is first needed: an engine does so at its start,
// since serving allocates no buffers. Not to be called inside Lead.
func (r *Runner) Reserve() error {
	set, err := r.newBuffers()
	if err != nil {
		return err
	}
	r.sets[1] = set
	exec.Touch(r.pool, r.config.Groups, set.Memory)
	return nil
}

// spareMemory is the part of the free memory (one in this many) that is left to page tables, the Go heap and everybody else: the kernel ends
// whoever takes it all.
const spareMemory = 16

// checkMemory says before loading when the model and its cache cannot fit, with the numbers.
func (r *Runner) checkMemory(o RunnerOptions) error {
	perBlock := int64(r.parts.KVBytesPerToken(o.Plan.KV)) * kvcache.BlockTokens
	if o.Blocks < 1 || int64(o.Blocks) > math.MaxInt64/4/perBlock || o.LogitRows > 1<<30 {
		return fmt.Errorf("a KV cache of %d blocks and %d rows of logits are sizes that no machine has: lower --ctx or --parallel", o.Blocks, o.LogitRows)
	}
	cache := perBlock * int64(o.Blocks)
	weights := r.parts.PackedBytes()
	rows := o.rows()
	activations := r.parts.BufferBytes(o.Plan, rows.all, rows.logits)
	free := mem.Available()
	free -= free / spareMemory
	if free > 0 && cache+weights+activations > free {
		return fmt.Errorf("the model needs %s, its KV cache of %d tokens %s and the activations of %d rows %s, but only %s of memory is free for them: lower --ctx or --parallel, or use a smaller model",
			mem.FormatBytes(weights), o.Blocks*kvcache.BlockTokens, mem.FormatBytes(cache), rows.all, mem.FormatBytes(activations), mem.FormatBytes(free))
	}
	return nil
}

// workerSets numbers the PUs of both phases as workers: decode PUs first, so that worker 0, whose thread runs the
// engine's loop, takes part in both phases wherever they overlap.
func workerSets(prefillPUs, decodePUs []int) (pus, prefill, decode []int) {
	index := func(list []int) (out []int) {
		for _, pu := range list {
			i := slices.Index(pus, pu)
			if i < 0 {
				i = len(pus)
				pus = append(pus, pu)
			}
			out = append(out, i)
		}
		slices.Sort(out)
		return out
	}
	for _, pu := range decodePUs { // those in both phases before the rest
		if slices.Contains(prefillPUs, pu) {
			pus = append(pus, pu)
		}
	}
	decode = index(decodePUs)
	prefill = index(prefillPUs)
	return pus, prefill, decode
}

// Lead runs loop on worker 0's own thread, from where forwards reach the other workers without waking a thread.
// Forward may be called only from inside it.
func (r *Runner) Lead(loop func(l *pool.Leader)) { r.pool.Lead(loop) }

// Forward runs a batch from op index `from` and returns the next index: Ops() when done, less when stop was set. A
// batch of the other phase than the last one makes the hot switch first: it changes which workers are active and which
// schedules run, and moves no weight. To go on with a halted forward, call it with the same batch and the index it
// returned, at once or, after Hold, when others have run.
func (r *Runner) Forward(l *pool.Leader, b *kvcache.Batch, from int, stop *atomic.Bool) (next int, err error) {
	p := &r.phases[1]
	if b.Prefill {
		p = &r.phases[0]
	}
	if _, err := l.SetActive(p.active); err != nil {
		return from, err
	}
	if from > 0 && r.held {
		r.use, r.held = 1-r.use, false
	}
	r.last, r.active = p.executor, p.active
	p.executor.Use(r.sets[r.use])
	return p.executor.Run(l, b, from, stop)
}

// Hold keeps the activations of the forward that was just halted until it goes on or Drop is called: others run on a
// second set, which is allocated the first time. One forward can be held.
func (r *Runner) Hold() error {
	other := 1 - r.use
	if r.sets[other] == nil {
		set, err := r.newBuffers()
		if err != nil {
			return err
		}
		r.sets[other] = set
	}
	r.use, r.held = other, true
	return nil
}

// Drop forgets the forward that is held, if there is one.
func (r *Runner) Drop() { r.held = false }

// Span returns when the last of the workers of the last Forward began its first op, and when its last op ended: the pause of a
// hot switch is between two of them.
func (r *Runner) Span() (began, ended time.Time) {
	return r.last.Span(r.active)
}

// Ops is the number of ops of a forward.
func (r *Runner) Ops() int { return len(r.Model.Ops) }

// Logits returns the logits of LogitRows[i] of the last Forward that ended.
func (r *Runner) Logits(i int) []float32 { return r.last.Logits(i) }

// Blocks is the number of KV blocks.
func (r *Runner) Blocks() int { return r.kv.Blocks() }

// Pool is the worker pool, for its statistics.
func (r *Runner) Pool() *pool.Pool { return r.pool }

// Memory is what the runner holds off the Go heap.
type Memory struct {
	Weights, KV, Activations int64 // bytes
	Packing                  time.Duration
}

// Memory reports the sizes of what was loaded.
func (r *Runner) Memory() Memory {
	m := Memory{Weights: r.weights.Bytes(), KV: int64(r.kv.Bytes()), Packing: r.packing}
	for _, set := range r.sets {
		if set != nil {
			m.Activations += int64(set.Bytes())
		}
	}
	return m
}

// Close ends the workers and frees everything. Nothing of the runner may be in use.
func (r *Runner) Close() {
	if r.pool != nil {
		r.pool.Close()
	}
	for _, p := range r.phases {
		if p.planned != nil {
			p.planned.Close()
		}
	}
	for _, old := range r.again {
		closeAll(old.executors)
	}
	for _, set := range r.sets {
		if set != nil {
			set.Free()
		}
	}
	if r.kv != nil {
		r.kv.Free()
	}
	if r.weights != nil {
		r.weights.Free()
	}
}
