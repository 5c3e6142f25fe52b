package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/kvcache"
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
	MixedCap  int // sched.Config.MixedCap
	Aging     time.Duration
}

// Request is one generation.
type Request struct {
	Prompt    []int32
	MaxTokens int // 0: up to the end of the context
	Sampling  Sampling
	Stop      []string
	IgnoreEOS bool
	Logprobs  bool
	Top       int // most likely alternatives to report beside each token, with Logprobs
	Class     sched.Class
}

// Token is one generated token and the text that it completed: whole runes only, and nothing of a stop string.
type Token struct {
	ID      int32
	Text    string
	Logprob float32
	Top     []TokenLogprob
}

// Result sums a generation up.
type Result struct {
	Finish       string // stop, length
	PromptTokens int
	Tokens       int
	Queued       time.Duration // until its first forward began
	FirstToken   time.Duration // from submission
	Total        time.Duration // from submission to the last token
}

// ErrClosed is returned for requests that the engine can no longer finish.
var ErrClosed = errors.New("the engine is shutting down")

// QueueFullError refuses a request because too many wait.
type QueueFullError struct{ RetryAfter time.Duration }

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("the queue is full: try again in %s", e.RetryAfter)
}

// TooLongError refuses a prompt that leaves no room for an answer.
type TooLongError struct{ Prompt, MaxTokens, Context int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the prompt has %d tokens but the context holds %d: shorten the prompt or serve with a larger --ctx", e.Prompt, e.Context)
}

// Engine runs many requests at once on one Runner: one goroutine, on worker 0's thread, drives the pure scheduler with
// the wall clock and runs the forwards it asks for.
type Engine struct {
	runner  *Runner
	tok     *tokenizer.Tokenizer
	context int
	draft   *draft

	mu      sync.Mutex // guards everything below
	sched   *sched.Scheduler
	jobs    map[sched.ID]*job
	lastID  sched.ID
	events  []sched.Event
	running *job // the one job of a prefill in flight
	busy    bool // a forward is in flight
	forward sched.Action
	ids     []sched.ID
	closing bool
	failed  error
	counts  Counts

	wake  chan struct{} // capacity 1
	stop  atomic.Bool   // halts the forward in flight at the next op
	ended chan struct{}
	begin time.Time
	batch kvcache.Batch
}

// Counts are totals since the start.
type Counts struct {
	Requests, PromptTokens, GeneratedTokens int64
	Prefills, Decodes                       int64
	PrefillTime, DecodeTime                 time.Duration
}

// job is a live request.
type job struct {
	id      sched.ID
	req     *Request
	sampler *sampler
	out     mailbox
	made    int
	limit   int
	arrived time.Time
	started time.Time
}

// New starts an engine over a freshly opened runner, which it owns from then on.
func New(o Options) (*Engine, error) {
	if o.Parallel < 1 || o.Context < 1 {
		return nil, fmt.Errorf("an engine needs at least one parallel request and one token of context, got %d and %d", o.Parallel, o.Context)
	}
	o.LogitRows = max(o.LogitRows, o.Parallel)
	o.Blocks = max(o.Blocks, kvcache.BlocksFor(o.Context))
	r, err := Open(o.RunnerOptions)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		runner: r, tok: o.Tokenizer, context: o.Context,
		draft: newDraft(r.vec, r.Model.Dims.Vocab),
		jobs:  map[sched.ID]*job{}, wake: make(chan struct{}, 1), ended: make(chan struct{}), begin: time.Now(),
		sched: sched.New(sched.Config{Blocks: o.Blocks, MaxRunning: o.Parallel, Queue: o.Queue,
			Chunk: o.Plan.Chunk, MixedCap: o.MixedCap, Aging: o.Aging}),
	}
	go e.loop()
	return e, nil
}

// Runner gives access to what the engine runs on, for its statistics.
func (e *Engine) Runner() *Runner { return e.runner }

// Context is the most tokens of one request.
func (e *Engine) Context() int { return e.context }

// Close cancels what is live, ends the loop and frees everything.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	e.stop.Store(true)
	e.poke()
	<-e.ended
	e.runner.Close()
}

func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Generate runs one request and calls emit for each token in order, from the caller's goroutine. It returns when the
// answer is complete; when ctx ends, at the next op of the model, with ctx's error; or with emit's error. Refusals are
// *QueueFullError, *TooLongError and ErrClosed.
func (e *Engine) Generate(ctx context.Context, req Request, emit func(Token) error) (Result, error) {
	limit, err := e.admissible(&req)
	if err != nil {
		return Result{}, err
	}
	j := &job{req: &req, sampler: newSampler(req.Sampling), limit: limit, arrived: time.Now()}
	j.out.ready = make(chan struct{}, 1)
	if err := e.submit(j); err != nil {
		return Result{}, err
	}
	return e.follow(ctx, j, emit)
}

// admissible checks a request against the context and returns how many tokens it may generate.
func (e *Engine) admissible(req *Request) (limit int, err error) {
	n := len(req.Prompt)
	if n == 0 {
		return 0, errors.New("the prompt is empty: give at least one token")
	}
	if n >= e.context {
		return 0, &TooLongError{Prompt: n, MaxTokens: req.MaxTokens, Context: e.context}
	}
	for _, id := range req.Prompt {
		if id < 0 || int(id) >= e.runner.Model.Dims.Vocab {
			return 0, fmt.Errorf("token %d is outside the vocabulary of %d", id, e.runner.Model.Dims.Vocab)
		}
	}
	limit = e.context - n
	if req.MaxTokens > 0 {
		limit = min(limit, req.MaxTokens)
	}
	return limit, nil
}

// submit hands a job to the scheduler. While a forward is in flight the scheduler is stepped here, so that a refusal
// does not wait for its end; otherwise the loop does it.
func (e *Engine) submit(j *job) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return e.failed
	}
	if e.closing {
		return ErrClosed
	}
	e.lastID++
	j.id = e.lastID
	e.jobs[j.id] = j
	e.counts.Requests++
	e.counts.PromptTokens += int64(len(j.req.Prompt))
	arrive := sched.Event{Kind: sched.Arrive, ID: j.id, Class: j.req.Class, Prompt: j.req.Prompt, MaxTokens: j.limit}
	if e.busy {
		e.handle(e.sched.Step(time.Since(e.begin), []sched.Event{arrive}))
	} else {
		e.events = append(e.events, arrive)
		e.poke()
	}
	return nil
}

// cancel withdraws a job; a prefill that runs for it alone halts at the next op.
func (e *Engine) cancel(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[j.id] != j {
		return
	}
	delete(e.jobs, j.id)
	e.events = append(e.events, sched.Event{Kind: sched.Cancel, ID: j.id})
	if e.running == j {
		e.stop.Store(true)
	}
	e.poke()
}

// follow passes a job's tokens on until it ends.
func (e *Engine) follow(ctx context.Context, j *job, emit func(Token) error) (Result, error) {
	text := newTranscript(e.tok, j.req.Stop)
	res := Result{PromptTokens: len(j.req.Prompt)}
	for {
		select {
		case <-ctx.Done():
			e.cancel(j)
			return res, ctx.Err()
		case <-j.out.ready:
		}
		steps, end := j.out.take()
		for _, s := range steps {
			if res.Tokens == 0 {
				res.FirstToken = s.at.Sub(j.arrived)
			}
			res.Tokens++
			res.Total = s.at.Sub(j.arrived)
			send, stopped := text.push(s)
			if err := emit(send); err != nil {
				e.cancel(j)
				return res, err
			}
			if stopped {
				e.cancel(j)
				return e.finish(res, j, "stop"), nil
			}
		}
		if end == nil {
			continue
		}
		if end.err != nil {
			return res, end.err
		}
		if rest := text.flush(); rest != "" {
			if err := emit(Token{ID: -1, Text: rest}); err != nil {
				return res, err
			}
		}
		return e.finish(res, j, end.reason), nil
	}
}

func (e *Engine) finish(res Result, j *job, reason string) Result {
	res.Finish = reason
	if !j.started.IsZero() {
		res.Queued = j.started.Sub(j.arrived)
	}
	return res
}
