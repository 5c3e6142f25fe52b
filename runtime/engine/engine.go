// Package engine runs requests of token ids on a model. A Runner owns what one model needs:
// weights, KV cache, worker pool and executors. An Engine runs many requests at once on a Runner,
// as the scheduler decides; a Sequence runs one without a scheduler.
package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"sandwich/profiles"
	"sandwich/profiles/occupancy"
	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/device"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/sampling"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/runtime/prefix"
	"sandwich/runtime/sched"
)

// Options configures New. Functions that are nil are not called.
type Options struct {
	RunnerOptions
	Context  int // limit of a request in tokens, prompt and answer
	Parallel int // requests that run at once
	Queue    int // requests that may wait in addition
	Service
	Speculation drafting.Options
	Accelerator DeviceOptions
	Prefixes    PrefixOptions

	IsEnd     func(id int32) bool // reports whether a token ends an answer or a message
	Observe   func(f Forward)     // is called after each forward, not concurrently; must not block
	Profile   *profiles.Profile   // its ceilings predict ops that have not run yet; may be nil
	Note      func(text string)   // is called with a sentence when the available CPUs change
	Displaced func(err error)     // is called with *api.UnavailableError when no PU of the plan is left

	// Occupancy moves workers away from PUs that other processes use. It needs Profile; nil leaves
	// workers on the PUs of the plan.
	Occupancy occupancy.Monitor
}

// Service configures how reactive and proactive requests share the engine. The fields are those of
// sched.Config with the same names.
type Service struct {
	Policy   string
	MixedCap int
	Aging    time.Duration
	Quantum  float64
	Bound    time.Duration
	TPOT     time.Duration
}

// Engine runs many requests at once on one Runner. One goroutine, on the thread of worker 0, drives
// the scheduler with the wall clock and runs the forwards that it plans. Exported methods may be
// called concurrently.
type Engine struct {
	runner  *Runner
	isEnd   func(id int32) bool
	context int
	buffer  *sampling.Buffer
	recent  recentTexts
	stored  storedPrefixes
	watch   watch // of the available CPUs

	drafting *drafting.Drafting // guarded by mu, except for Open

	mu         sync.Mutex // guards the fields up to the next blank line
	sched      *sched.Scheduler
	driver     *sched.Driver
	jobs       map[sched.ID]*job
	lastID     sched.ID
	closing    bool
	failed     error
	counts     Counts
	embedCalls int // running calls of Embed
	maxEmbeds  int // limit of embedCalls

	cores    lane // forwards that run on the cores
	onDevice lane // forwards of the phases that the device serves, if there is one
	lanes    lanes
	leader   *pool.Leader
	observe  func(f Forward)
	lost     func(err error)
	wake     chan struct{} // capacity 1
	ended    chan struct{}
	begin    time.Time
	once     sync.Once // of Close

	accelerator device.Device // of onDevice
	deviceName  string
}

// job is a request that has not ended.
type job struct {
	id        sched.ID
	req       *api.Request
	sampler   *sampling.Sampler
	out       mailbox
	placed    chan struct{} // closed when the scheduler has queued the job; nil if no caller waits for it
	generated int           // tokens
	limit     int           // of generated
	scored    int           // prompt positions whose log probabilities have been sent
	computed  int           // prompt positions
	arrived   time.Time
	started   time.Time // start of its first forward; set before the first token
	cached    int       // prompt positions that were cached at started

	cachedOnArrival int     // prompt positions; set if Request.Queued is set
	storedOnArrival int     // prompt positions that will be loaded from disk
	known           []int32 // tokens of the event that goes to the scheduler
	drafts          drafting.Request
	output          []int32    // generated tokens, for recentTexts
	hit             prefix.Hit // of its prompt on disk
	stopLoad        func()     // cancels the load of hit; may be nil
	noted           bool       // its prompt was passed to the prefix store
	resumeAt        int        // op at which its halted prefill continues
	vector          []float32  // output row of a pooled model; set before out is closed
}

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
func newEngine(ctx context.Context, o Options) (*Engine, error) {
	if o.Parallel < 1 || o.Context < 1 {
		return nil, fmt.Errorf("%d parallel requests and a context of %d tokens: use at least one of each",
			o.Parallel, o.Context)
	}
	most := o.Parallel + o.Queue
	shape, err := arch.ConfigOf(o.File)
	if err != nil {
		return nil, err
	}
	if shape.Pooling != model.NoPooling {
		o.Parallel = max(o.Parallel, minTexts)
	}
	rows := sched.DecodeRows(o.Parallel, o.Plan.BatchMax)
	o.LogitRows = max(o.LogitRows, rows)
	o.Blocks = max(o.Blocks, kvcache.BlocksFor(o.Context+1))
	o.RunnerOptions.Context = max(o.RunnerOptions.Context, o.Context)
	o.Sequences = sched.Residents(o.Parallel)
	o.Digest = o.Prefixes.Store != nil
	r, err := Open(ctx, o.RunnerOptions)
	if err != nil {
		return nil, err
	}
	if err := r.Reserve(ctx); err != nil {
		r.Close()
		return nil, err
	}
	accelerator, err := o.Accelerator.openDevice(ctx, r, sched.Sets, o.LogitRows, o.Context)
	if err != nil {
		r.Close()
		return nil, err
	}
	costs := newCosts(r.Model, o.Plan, o.Profile)
	drafts := newDrafting(o.Speculation, r, costs, rows)
	config := sched.Config{Lanes: o.Accelerator.lanes(), Stores: r.assembly.Stores,
		BatchRows: rows, Allot: drafts.Allot,
		MaxRunning: o.Parallel, Queue: o.Queue,
		Chunk: o.Plan.Chunk, LogitRows: o.LogitRows, Policy: o.Policy, MixedCap: o.MixedCap, Aging: o.Aging,
		Quantum: o.Quantum, Bound: o.Bound,
		TPOT: o.TPOT, Forecast: func(rows, positions int) time.Duration {
			return costs.Forward(phase.Decode, cost.Load{Rows: rows, Heads: rows, Positions: positions})
		}}
	if r.Model.Pooled() {
		config.Texts, config.Whole, config.Queue = true, r.Model.WholeText(), most*maxTexts
	}
	scheduler, err := sched.New(config)
	if err != nil {
		closeDevice(accelerator)
		r.Close()
		return nil, err
	}
	e := &Engine{
		runner: r, isEnd: o.IsEnd, context: o.Context, watch: newWatch(r, &o),
		buffer: sampling.NewBuffer(r.assembly.Workers.Vec, r.Model.Dims.Vocab),
		jobs:   map[sched.ID]*job{}, maxEmbeds: most, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		begin: time.Now(), drafting: drafts,
		sched: scheduler, observe: o.Observe, lost: o.Accelerator.Lost, accelerator: o.Accelerator.Device,
		deviceName: o.Accelerator.Name,
	}
	e.cores.Engine, e.cores.costs = e, costs
	e.openPrefixes(&o)
	e.driver = sched.NewDriver(e.sched, &e.mu, wall{e}, e.executor(accelerator, &o.Accelerator))
	return e, nil
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
func (e *Engine) Runner() *Runner { return e.runner }

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
	e.lanes.endDivided()
	e.lanes.running.Wait()
	e.stored.close()
	closeDevice(e.onDevice.device)
	e.runner.Close()
}

// poke wakes the loop if it waits.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
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
	j := &job{req: &req, sampler: sampling.New(req.Sampling, req.Prompt), limit: limit}
	j.out.ready = make(chan struct{}, 1)
	if req.Prepare != nil {
		j.placed = make(chan struct{})
	}
	e.findStored(j)
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
	if req.Queued != nil {
		q := e.queueEstimate(j)
		q.Prompt, q.Cached, q.Diverged = len(req.Prompt), j.cachedOnArrival, diverged
		q.Stored = max(0, j.storedOnArrival-j.cachedOnArrival)
		req.Queued(q)
	}
	defer e.cancel(j) // if it has not ended: ctx ended, or emit failed, panicked or ended the answer
	if req.Prepare != nil {
		if err := e.prepare(ctx, j); err != nil {
			return api.Result{}, err
		}
	}
	res, err := e.follow(ctx, j, emit)
	if len(j.output) > 0 {
		e.remember(j)
	}
	return res, err
}

// admissible checks a request against the context and returns how many tokens it may generate.
func (e *Engine) admissible(req *api.Request) (limit int, err error) {
	n := len(req.Prompt)
	if e.Pooled() {
		return 0, &api.InvalidError{Message: "this model makes embeddings or scores and generates no text"}
	}
	if n == 0 {
		return 0, &api.InvalidError{Message: "the prompt is empty: give at least one token"}
	}
	if n >= e.context {
		return 0, &api.TooLongError{PromptTokens: n, MaxTokens: req.MaxTokens, Context: e.context}
	}
	if err := e.inVocabulary(req.Prompt); err != nil {
		return 0, err
	}
	vocab := e.runner.Model.Dims.Vocab
	for id := range req.Sampling.Bias {
		if id < 0 || int(id) >= vocab {
			const text = "holds token id %d, outside the vocabulary of %d"
			return 0, &api.InvalidError{Param: "logit_bias", Message: fmt.Sprintf(text, id, vocab)}
		}
	}
	if req.PromptOnly {
		return 1, nil // no token is drawn
	}
	limit = e.context - n
	if req.MaxTokens > 0 {
		limit = min(limit, req.MaxTokens)
	}
	return limit, nil
}

// inVocabulary returns an error for a prompt with an id outside the vocabulary.
func (e *Engine) inVocabulary(prompt []int32) error {
	vocab := e.runner.Model.Dims.Vocab
	for i, id := range prompt {
		if id < 0 || int(id) >= vocab {
			const text = "token %d of the prompt has id %d, outside the vocabulary of %d"
			return &api.InvalidError{Message: fmt.Sprintf(text, i, id, vocab)}
		}
	}
	return nil
}

// submit passes a job to the scheduler, which may refuse it before submit returns.
func (e *Engine) submit(j *job) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return e.failed
	}
	if e.closing {
		return api.ErrClosed
	}
	if err := e.watch.refused(); err != nil {
		return err
	}
	e.lastID++
	j.id = e.lastID
	e.jobs[j.id], j.arrived = j, time.Now()
	if j.req.OfPrompt {
		j.out.put(drawnToken{id: j.req.Prompt[0], logprob: float32(math.NaN()), prompt: true})
	}
	if j.req.Queued != nil {
		e.lookUp(j)
	}
	e.counts.Requests++
	e.counts.PromptTokens += int64(len(j.req.Prompt))
	e.driver.Post(sched.Event{
		Kind: sched.Arrive, ID: j.id, Class: j.req.Class, Priority: j.req.Priority, Prompt: j.req.Prompt,
		MaxTokens: j.limit, Salt: j.req.Salt, Ends: e.ends(j.req.Prompt), Logits: j.req.OfPrompt,
		Pending: j.placed != nil, Stored: e.worthLoading(j),
	})
	e.poke()
	return nil
}

// ends returns the positions of a prompt at which a later prompt with the same beginning is likely
// to diverge: after each message, and at the end.
func (e *Engine) ends(prompt []int32) (list []int) {
	if e.Pooled() {
		return nil
	}
	for i, id := range prompt {
		if e.isEndToken(id) {
			list = append(list, i+1)
		}
	}
	return append(list, len(prompt))
}

// isEndToken reports whether a token ends an answer or a message.
func (e *Engine) isEndToken(id int32) bool { return e.isEnd != nil && e.isEnd(id) }

// cancel ends a job that has not ended.
func (e *Engine) cancel(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[j.id] != j {
		return
	}
	delete(e.jobs, j.id)
	if j.stopLoad != nil {
		j.stopLoad()
	}
	e.driver.Post(sched.Event{Kind: sched.Cancel, ID: j.id})
	e.poke()
}
