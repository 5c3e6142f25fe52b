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
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
	"sandwich/runtime/tokenizer"
)

// Options of New.
type Options struct {
	RunnerOptions
	Tokenizer *tokenizer.Tokenizer
	Context   int // most tokens of one request, prompt and answer
	Parallel  int // requests that run at once
	Queue     int // requests that may wait beside them
	Service
	Observe   func(f Forward)   // hears of each forward as it ends, and must not block; may be nil
	Profile   *profiles.Profile // whose roofs predict ops that did not run yet; may be nil
	Note      func(text string) // hears, in one sentence, what changed on the machine while serving; may be nil
	Displaced func(err error)   // hears an *api.UnavailableError once no PU of the plan is left; may be nil

	// Occupancy moves workers away from PUs that other processes use, with Profile; nil: they stay
	// where the plan puts them.
	Occupancy occupancy.Monitor
}

// Service is how requests of two classes are served: the fields of sched.Config of these names.
type Service struct {
	Policy   string
	MixedCap int
	Aging    time.Duration
	Quantum  float64
	Bound    time.Duration
	TPOT     time.Duration
}

// Engine runs many requests at once on one Runner: one goroutine, on worker 0's thread, drives the
// pure scheduler with the wall clock and runs the forwards it asks for.
type Engine struct {
	runner  *Runner
	tok     *tokenizer.Tokenizer
	context int
	draft   *draft
	large   chan struct{} // capacity 1: whoever encodes a large text
	recent  recentTexts
	watch   watch // over the PUs that the system leaves

	mu      sync.Mutex // guards everything below
	sched   *sched.Scheduler
	driver  *sched.Driver
	jobs    map[sched.ID]*job
	lastID  sched.ID
	closing bool
	failed  error
	counts  Counts
	readers int // requests for vectors, run or wait
	most    int // of them

	cores   cores // what the driver has forwards run on
	observe func(f Forward)
	wake    chan struct{} // capacity 1
	ended   chan struct{}
	begin   time.Time
	batch   kvcache.Batch
	once    sync.Once // of Close
}

// job is a live request.
type job struct {
	id      sched.ID
	req     *api.Request
	sampler *sampler
	out     mailbox
	placed  chan struct{} // closed when it has a place in the queue; nil where nothing waits for that
	made    int
	limit   int
	scored  int // position of the prompt up to which log probabilities were given
	read    int // positions of the prompt that are computed
	arrived time.Time
	started time.Time // of its first forward; set before the first token
	cached  int       // positions that were there before it
	hit     int       // positions that were cached when it came; set where Request.Queued is
	known   []int32   // on its way to the scheduler
	forced  []int32   // given out, since no others were allowed, and not yet known to it
	line    []int32   // memory of forced
	said    []int32   // tokens of the answer, for recentTexts
	halted  int       // op at which its prefill goes on when it is resumed
	vector  []float32 // what a pooled model made of it; set before out is closed
}

// New starts an engine. Errors are those of Open, which ctx ends, and sizes below one.
func New(ctx context.Context, o Options) (*Engine, error) {
	e, err := newEngine(ctx, o)
	if err != nil {
		return nil, err
	}
	go e.loop()
	e.watch.follow(e.ended)
	return e, nil
}

// newEngine makes an engine whose loop does not run yet.
func newEngine(ctx context.Context, o Options) (*Engine, error) {
	if o.Parallel < 1 || o.Context < 1 {
		return nil, fmt.Errorf("an engine needs at least one parallel request and one token of context, got %d "+
			"and %d", o.Parallel, o.Context)
	}
	most := o.Parallel + o.Queue
	shape, err := model.ConfigOf(o.File)
	if err != nil {
		return nil, err
	}
	if shape.Pooling != model.NoPooling {
		o.Parallel = max(o.Parallel, leastTexts)
	}
	o.LogitRows = max(o.LogitRows, o.Parallel+1) // an aged request has a place of its own
	o.Blocks = max(o.Blocks, kvcache.BlocksFor(o.Context+1))
	o.RunnerOptions.Context = max(o.RunnerOptions.Context, o.Context)
	o.Sequences = sched.Residents(o.Parallel)
	r, err := Open(ctx, o.RunnerOptions)
	if err != nil {
		return nil, err
	}
	if err := r.Reserve(ctx); err != nil {
		r.Close()
		return nil, err
	}
	costs := newCosts(r.Model, o.Plan, o.Profile)
	config := sched.Config{Lanes: []sched.Lane{sched.CoresLane()}, Stores: r.assembly.Stores,
		MaxRunning: o.Parallel, Queue: o.Queue,
		Chunk: o.Plan.Chunk, LogitRows: o.LogitRows, Policy: o.Policy, MixedCap: o.MixedCap, Aging: o.Aging,
		Quantum: o.Quantum, Bound: o.Bound,
		TPOT: o.TPOT, Forecast: func(rows, positions int) time.Duration {
			return costs.Forward(phase.Decode, cost.Load{Rows: rows, Heads: rows, Positions: positions})
		}}
	if r.Model.Pooled() {
		config.Texts, config.Whole, config.Queue = true, r.Model.AtOnce(), most*maxTexts
	}
	scheduler, err := sched.New(config)
	if err != nil {
		r.Close()
		return nil, err
	}
	e := &Engine{
		runner: r, tok: o.Tokenizer, context: o.Context, watch: newWatch(r, &o),
		draft: newDraft(r.assembly.Workers.Kernels.Vec, r.Model.Dims.Vocab),
		jobs:  map[sched.ID]*job{}, most: most, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		begin: time.Now(),
		large: make(chan struct{}, 1),
		sched: scheduler, observe: o.Observe,
	}
	e.cores.Engine, e.cores.costs = e, costs
	e.driver = sched.NewDriver(e.sched, &e.mu, wall{e}, &e.cores)
	return e, nil
}

// Ready says why new requests are refused, nil where they are not.
func (e *Engine) Ready() error {
	e.mu.Lock()
	failed := e.failed
	e.mu.Unlock()
	if failed != nil {
		return failed
	}
	return e.watch.refused()
}

// Runner gives access to what the engine runs on, for its statistics.
func (e *Engine) Runner() *Runner { return e.runner }

// Context is the most tokens of one request.
func (e *Engine) Context() int { return e.context }

// Close ends what is live with api.ErrClosed, ends the loop and frees everything. Further calls
// wait for the first one.
func (e *Engine) Close() { e.once.Do(e.shut) }

func (e *Engine) shut() {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	e.cores.pace.stop.Store(true)
	e.poke()
	<-e.ended
	e.watch.close()
	e.runner.Close()
}

func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Generate runs one request and calls emit for each token in order, from the caller's goroutine. It
// returns when the answer is complete; when ctx ends, at the next op of the model, with ctx's
// error; or with emit's error. MaxTokens beyond the context is cut to what the context leaves; of
// its prompt only the token ids are read. Refusals are *api.QueueFullError, *api.TooLongError,
// *api.InvalidError, api.ErrClosed, *api.UnavailableError while no PU of the plan may be used, and
// *InternalError once the engine failed; *OverflowError ends a request whose numbers overflow.
func (e *Engine) Generate(ctx context.Context, req api.Request, emit func(api.Token) error) (api.Result, error) {
	limit, err := e.admissible(&req)
	if err != nil {
		return api.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return api.Result{}, err
	}
	req.Prompt = slices.Clone(req.Prompt) // the scheduler may read it after this call
	j := &job{req: &req, sampler: newSampler(req.Sampling, req.Prompt), limit: limit}
	j.out.ready = make(chan struct{}, 1)
	if req.Prepare != nil {
		j.placed = make(chan struct{})
	}
	diverged := -1
	if req.Queued != nil {
		diverged = e.recent.diverged(req.Salt, req.Prompt)
	}
	if err := e.submit(j); err != nil {
		return api.Result{}, err
	}
	if req.Queued != nil {
		q := e.outlook(j)
		q.Prompt, q.Cached, q.Diverged = len(req.Prompt), j.hit, diverged
		req.Queued(q)
	}
	defer e.cancel(j) // where it is still live: ctx ended, emit failed or panicked, a stop string appeared
	if req.Prepare != nil {
		if err := e.prepare(ctx, j); err != nil {
			return api.Result{}, err
		}
	}
	res, err := e.follow(ctx, j, emit)
	if len(j.said) > 0 {
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
		return 1, nil // which no draw follows
	}
	limit = e.context - n
	if req.MaxTokens > 0 {
		limit = min(limit, req.MaxTokens)
	}
	return limit, nil
}

// inVocabulary refuses ids that are no tokens.
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

// submit hands a job to the scheduler, which may refuse it before this returns.
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
		j.out.put(step{id: j.req.Prompt[0], logprob: float32(math.NaN()), prompt: true})
	}
	if j.req.Queued != nil {
		e.lookUp(j)
	}
	e.counts.Requests++
	e.counts.PromptTokens += int64(len(j.req.Prompt))
	e.driver.Post(sched.Event{
		Kind: sched.Arrive, ID: j.id, Class: j.req.Class, Priority: j.req.Priority, Prompt: j.req.Prompt,
		MaxTokens: j.limit, Salt: j.req.Salt, Ends: e.ends(j.req.Prompt), Logits: j.req.OfPrompt,
		Pending: j.placed != nil,
	})
	e.poke()
	return nil
}

// ends are the positions of a prompt at which another one that begins like it may go on elsewhere:
// behind each message, and behind all of it.
func (e *Engine) ends(prompt []int32) (list []int) {
	if e.Pooled() {
		return nil
	}
	for i, id := range prompt {
		if e.tok != nil && e.tok.IsEOG(id) {
			list = append(list, i+1)
		}
	}
	return append(list, len(prompt))
}

// cancel withdraws a job that is still live.
func (e *Engine) cancel(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[j.id] != j {
		return
	}
	delete(e.jobs, j.id)
	e.driver.Post(sched.Event{Kind: sched.Cancel, ID: j.id})
	e.poke()
}
