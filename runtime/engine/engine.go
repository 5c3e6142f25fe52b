// Package engine runs requests of token ids on a model. An Engine runs many requests at once on a
// forward.Runner, as the scheduler decides; a Sequence runs one without a scheduler.
//
// state.go has the types, and what all other files need of them. A request passes submit.go and
// prepare.go, forwards of the loop (loop.go, cuts.go, device.go, divided.go, draw.go or embed.go)
// and follow.go. engine.go opens and closes an engine.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/api"
	"sandwich/runtime/background"
	"sandwich/runtime/cost"
	"sandwich/runtime/engine/cpus"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/forecast"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/engine/sampling"
	"sandwich/runtime/engine/steptimes"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// New starts an engine. It returns the errors of Open, which ctx cancels, and an error for sizes
// below one.
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := newEngine(ctx, o)
	if err != nil {
		return nil, err
	}
	go e.loop()
	e.watch.follow(e.ended)
	return e, nil
}

// newEngine returns an engine whose loop does not run yet.
func newEngine(ctx context.Context, o Options) (e *Engine, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	maxEmbeds := o.Parallel + o.Queue
	rows, err := o.setSizes()
	if err != nil {
		return nil, err
	}
	r, err := openRunner(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	var on *offload.Runner
	defer func() {
		if err != nil {
			closeDevice(on)
			r.Close()
		}
	}()
	pieces := background.In(o.Turns)
	if on, err = o.Accelerator.openDevice(ctx, r, pieces, sched.Sets, o.LogitRows, o.Context); err != nil {
		return nil, err
	}
	monitor := o.Accelerator.monitor(r)
	e = &Engine{
		runner: r, isEnd: o.IsEnd, context: o.Context, watch: newWatch(r, &o),
		buffer: sampling.NewBuffer(r.Assembly().Workers.Vec, r.Model.Dims.Vocab),
		jobs:   map[sched.ID]*job{}, maxEmbeds: maxEmbeds,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), begin: time.Now(), turns: o.Cores,
		observe: o.Observe, lost: o.Accelerator.Lost, accelerates: o.Accelerator,
		traffic: monitor, contend: monitor.Contend,
	}
	e.cores.e = e
	pieces.Once(func() { e.cores.costs = forecast.NewCosts(r.Model, o.Plan, o.Profile) })
	var copies bool
	pieces.Once(func() { e.drafting, copies, err = newDrafting(o.Speculation, r, o.Profile, rows) })
	if err != nil {
		return nil, err
	}
	config := e.schedulerConfig(&o, rows, copies)
	if pieces.Once(func() { e.sched, err = sched.New(config) }); err != nil {
		return nil, err
	}
	e.openPrefixes(&o)
	e.driver = sched.NewDriver(e.sched, &e.mu, wall{e}, e.executor(on, &o.Accelerator))
	e.lanes.divided.quantum = cmp.Or(o.Quantum, sched.DefaultQuantum)
	return e, nil
}

// setSizes sets the options of the load of a model that follow from the sizes of the engine. It
// returns the most rows of a decode batch.
func (o *Options) setSizes() (rows int, err error) {
	shape, err := arch.ConfigOf(o.File)
	if err != nil {
		return 0, err
	}
	if shape.Pooling != model.NoPooling {
		o.Parallel = max(o.Parallel, minTexts)
	}
	rows = sched.DecodeRows(o.Parallel, o.Plan.BatchMax)
	o.LogitRows = max(o.LogitRows, rows)
	o.Blocks = max(o.Blocks, kvcache.BlocksFor(o.Context+1))
	o.Options.Context = max(o.Options.Context, o.Context)
	o.Sequences = sched.Residents(o.Parallel)
	o.setLoad(rows)
	return rows, nil
}

// openRunner opens a runner with all sets of activations that a scheduler may use.
func openRunner(ctx context.Context, o forward.Options) (*forward.Runner, error) {
	r, err := forward.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := r.Reserve(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// schedulerConfig returns the configuration of the scheduler for decode batches of up to rows rows.
// copies is sched.Config.CopyStates.
func (e *Engine) schedulerConfig(o *Options, rows int, copies bool) sched.Config {
	m := e.runner.Model
	c := sched.Config{Lanes: o.Accelerator.lanes(), Stores: e.runner.Assembly().Stores,
		BatchRows: rows, Allot: e.drafting.Allot, CopyStates: copies,
		MaxRunning: o.Parallel, Queue: o.Queue, Chunk: o.Plan.Chunk, LogitRows: o.LogitRows,
		Policy: o.Policy, MixedCap: o.MixedCap, Aging: o.Aging, Quantum: o.Quantum, Bound: o.Bound, TPOT: o.TPOT,
		NoPreemption: o.NoPreemption, NoPiggyback: o.NoPiggyback,
		Forecast: func(rows, positions int) time.Duration {
			l := cost.Load{Rows: rows, Heads: rows, Positions: positions}
			return e.costsOf(phase.Decode).Forward(phase.Decode, l)
		}}
	if m.Pooled() {
		c.Texts, c.Whole, c.Queue = true, m.WholeText(), e.maxEmbeds*maxTexts
	}
	if e.traffic != nil {
		c.Contends = e.contends
	}
	return c
}

// check returns an error for sizes below one and options that need others.
func (o *Options) check() error {
	if o.Parallel < 1 || o.Context < 1 {
		return fmt.Errorf("%d parallel requests and a context of %d tokens: use at least one of each", o.Parallel,
			o.Context)
	}
	if (o.Cores == nil) != (o.Turns == nil) {
		return errors.New("engines that share the cores need both Cores and Turns")
	}
	return nil
}

// setLoad sets the options of the load of a model for decode batches of up to rows rows.
func (o *Options) setLoad(rows int) {
	o.Digest = o.Prefixes.Store != nil
	if back := o.Speculation.Rollback; back == drafting.RollbackCopy ||
		o.Speculation.Drafter != nil && back != drafting.RollbackReplay {
		o.DraftRows = rows - 1
	}
}

// Ready returns the error with which new requests are refused, nil if they are accepted.
func (e *Engine) Ready() error {
	e.mu.Lock()
	failed := e.failed
	e.mu.Unlock()
	if failed != nil {
		return failed
	}
	return e.watch.refused()
}

// Runner returns the runner of the engine, for its statistics.
func (e *Engine) Runner() *forward.Runner { return e.runner }

// Context returns the limit of a request in tokens, prompt and answer.
func (e *Engine) Context() int { return e.context }

// Close ends all requests with api.ErrClosed, stops the loop and frees the engine's memory. Further
// calls wait for the first one.
func (e *Engine) Close() { e.once.Do(e.shut) }

// shut implements Close.
func (e *Engine) shut() {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	e.cores.gate.stop.Store(true)
	e.stopDevice()
	e.poke()
	<-e.ended
	e.watch.close()
	e.lanes.running.Wait() // first: a forward that ends may still start a divided one
	e.lanes.endDivided()
	e.stored.close()
	closeDevice(e.onDevice.device)
	e.runner.Close()
}

// Generate runs one request of token ids and calls emit for each token in order, from the caller's
// goroutine; tokens have no text. It returns when the answer is complete; when ctx ends, at the
// next op of the model, with ctx's error; when emit returns api.ErrStop; or with another error of
// emit.
// MaxTokens is reduced to the tokens that the context leaves. A request is refused with
// *api.QueueFullError, *api.TooLongError, *api.InvalidError, api.ErrClosed, *api.UnavailableError
// while no PU of the plan is available, or *InternalError after a failure of the engine.
// *OverflowError ends a request whose numbers overflow.
func (e *Engine) Generate(ctx context.Context, req api.Request, emit func(api.Token) error) (api.Result, error) {
	limit, err := e.admissible(&req)
	if err != nil {
		return api.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return api.Result{}, err
	}
	req.Prompt = slices.Clone(req.Prompt) // the scheduler may read it after this call
	j := &job{req: &req, limit: limit, hit: e.findStored(ctx, &req)}
	return e.process(ctx, j, emit)
}

// process runs a job that is not submitted yet, as Generate describes.
func (e *Engine) process(ctx context.Context, j *job, emit func(api.Token) error) (api.Result, error) {
	req := j.req
	j.sampler = sampling.New(req.Sampling, req.Prompt)
	j.out.ready = make(chan struct{}, 1)
	if req.Prepare != nil {
		j.placed = make(chan struct{})
	}
	diverged := -1
	if req.Queued != nil {
		diverged = e.recent.diverged(req.Salt, req.Prompt)
	}
	if !req.PromptOnly {
		e.drafting.Open(&j.drafts, req.Salt, req.Prompt)
	}
	defer j.drafts.Close() // after cancel
	if err := e.submit(j); err != nil {
		return api.Result{}, err
	}
	defer e.cancel(j) // if it has not ended: ctx ended, or a callback failed, panicked or ended the answer
	if req.Queued != nil {
		q := e.queueEstimate(j)
		q.Prompt, q.Cached, q.Diverged = len(req.Prompt), j.cachedOnArrival, diverged
		q.Stored = max(0, j.storedOnArrival-j.cachedOnArrival)
		req.Queued(q)
	}
	if req.Prepare != nil {
		if err := e.prepare(ctx, j); err != nil {
			return api.Result{}, err
		}
	}
	res, err := e.follow(ctx, j, emit)
	if err != nil {
		e.times(&res, j)
	}
	if len(j.output) > 0 {
		e.remember(j)
	}
	return res, err
}

// Placement returns Runner.Placement, or api.ErrClosed after Close was called.
func (e *Engine) Placement() ([]forward.Placement, error) { return e.watch.placement() }

// newWatch returns a watch over the CPUs of a runner; follow starts it.
func newWatch(r *forward.Runner, o *Options) watch {
	var mover *cpus.Mover
	if !o.Unpinned {
		mover = cpus.NewMover(o.Occupancy, o.Profile, r.Pool())
	}
	return watch{runner: r, note: o.Note, displaced: o.Displaced, mover: mover,
		read: func() (cpus.State, error) { return cpus.Read(r.Pool()) }}
}

// newDrafting returns the state of speculation for decode batches of up to rows rows, and whether
// recurrent states in drafts are to be copied. The profile may be nil.
func newDrafting(o drafting.Options, r *forward.Runner, p *profiles.Profile, rows int,
) (d *drafting.Drafting, copies bool, err error) {
	curves, err := steptimes.Estimate(r.Model, r.Plan, p, rows)
	if err != nil {
		return nil, false, err
	}
	state := r.Assembly().States.Each()
	copies = state > 0 && copiesStates(o.Rollback, curves[0].Times, steptimes.Copy(state, r.Plan, p))
	return drafting.New(o, curves, state > 0 && !copies), copies, nil
}

// copiesPerReplay is the assumed number of states that are copied for each row that need not be
// computed again: a step copies the state after each drafted token, and accepted tokens are
// computed again only after a draft that was rejected in part.
const copiesPerReplay = 4

// copiesStates chooses how recurrent states return to the last accepted token of a draft: by
// copies, of which one takes some seconds, or by a further row in a later step. steps are the
// seconds of steps of 1, 2, ... rows.
func copiesStates(o drafting.Rollback, steps []float64, seconds float64) bool {
	switch {
	case o != drafting.RollbackByCost:
		return o == drafting.RollbackCopy
	case len(steps) < 2:
		return false
	}
	return copiesPerReplay*seconds < steps[1]-steps[0]
}
