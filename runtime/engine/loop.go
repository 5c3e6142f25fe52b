package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// loop drives the scheduler until Close, on a thread that is worker 0 during forwards.
func (e *Engine) loop() {
	defer close(e.ended)
	defer e.endAll()
	defer e.rest()
	e.runner.Lead(func(l *pool.Leader) {
		e.leader = l
		e.driver.Drive()
	})
}

// wall is the clock of an engine. It counts from the engine's start.
type wall struct{ e *Engine }

// Now returns the time since the engine's start.
func (w wall) Now() time.Duration { return time.Since(w.e.begin) }

// Wait waits for a request if the scheduler is idle. It returns false when the engine closes.
func (w wall) Wait(idle bool) bool {
	if idle {
		w.e.rest()
		w.e.cores.ended = time.Time{} // the idle time is no overhead between forwards
		w.e.idle.Store(true)
		<-w.e.wake
		w.e.idle.Store(false)
	}
	w.e.iterations.Add(1)
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return !w.e.closing
}

// Progress returns a count that grows while the engine works, with each step of a forward on the
// cores and each forward, and whether the engine has nothing to compute. It waits for the lock of
// the engine, so it does not return if the engine hangs with the lock held.
func (e *Engine) Progress() (count uint64, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	count = e.iterations.Load() + e.cores.gate.passed.Load() + e.onDevice.gate.passed.Load() +
		uint64(e.counts.Prefills+e.counts.Decodes)
	return count, e.idle.Load()
}

// endAll ends all requests, with *InternalError if the loop panicked and else with api.ErrClosed,
// and makes submit refuse later ones with the same error.
func (e *Engine) endAll() {
	failure := api.ErrClosed
	if p := recover(); p != nil {
		failure = internalError(p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = failure
	for id, j := range e.jobs {
		delete(e.jobs, id)
		j.out.close("", failure)
	}
}

// InternalError is the error of every request of an engine whose loop or forward panicked. The
// engine refuses further requests with it.
type InternalError struct {
	Value any    // value of the panic
	Stack []byte // stack of the goroutine that panicked; nil when unknown
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("the engine stopped after an internal error, restart it: %v", e.Value)
}

// Unwrap returns the value of the panic if that is an error.
func (e *InternalError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// internalError returns an *InternalError with the value of a panic of the loop or a worker.
func internalError(p any) error {
	if w, ok := p.(*pool.Panic); ok {
		return &InternalError{Value: w.Value, Stack: w.Stack}
	}
	return &InternalError{Value: p}
}

// Carry carries out the scheduler's actions that run no forward. A preempted request needs no
// action here, since its prefill starts again.
func (c *lane) Carry(a *sched.Action) {
	switch a.Kind {
	case sched.Halt:
		c.gate.stop.Store(true)
	case sched.Reject:
		c.e.reject(a)
	case sched.Load:
		c.e.startLoad(a)
	case sched.Placed:
		if j := c.e.jobs[a.ID]; j != nil {
			close(j.placed)
		}
	}
}

// Begin makes the batch of a forward and records the start of requests whose first forward it is.
// That may be a decode: a prompt of one token, or with all tokens but the last cached, needs no
// prefill.
func (c *lane) Begin(act *sched.Action) {
	c.gate.stop.Store(false)
	c.e.sched.Fill(act.Lane, &c.batch)
	c.set, c.next = int(act.Set), 0
	j := c.e.jobs[act.ID]
	c.class = c.classOf(act)
	planned := *act
	if act.Kind == sched.Resume && (c.again || j != nil && j.resumeAt == 0) {
		planned.Kind = sched.Prefill
	} else if j != nil && act.Kind == sched.Resume {
		c.next = j.resumeAt
	}
	c.plan(&planned)
	if j != nil && act.Kind != sched.Decode {
		j.begin(act.Pos)
	}
	for i, r := range act.Rows { // of a decode batch, or of a prefill of several texts
		if j := c.e.jobs[r.ID]; j != nil {
			j.begin(c.batch.Spans[i].Pos)
		}
	}
}

// classOf returns the class of the most urgent request of a forward. Engine.mu is held.
func (c *lane) classOf(act *sched.Action) api.Class {
	class := api.Proactive
	if j := c.e.jobs[act.ID]; j != nil {
		class = min(class, j.req.Class)
	}
	for _, r := range act.Rows {
		if j := c.e.jobs[r.ID]; j != nil {
			class = min(class, j.req.Class)
		}
	}
	return class
}

// Run executes a forward from the op at which it halted, or from the first.
func (c *lane) Run(f *sched.Action) (lane sched.LaneID, done bool) {
	c.takeCores()
	defer c.pause()
	began := time.Now()
	if c.gap = 0; !c.ended.IsZero() {
		c.gap = began.Sub(c.ended)
	}
	c.e.runner.UseTeams(c.e.watch.team())
	c.e.runner.Use(c.base + c.set)
	c.e.runner.Cut(c.cuts[c.set])
	c.sharing = c.shares(f.Kind.Phase())
	c.gate.upload = c.beginUpload()
	c.gate.turns = c.e.turns
	c.gate.start(c.next)
	next, err := c.forward(f)
	for err == nil && c.gate.yields && next < len(c.gate.steps) {
		c.giveCores()
		c.takeCores()
		began = began.Add(c.gate.resume(next))
		c.next = next
		next, err = c.forward(f)
	}
	if err != nil {
		panic(err) // the scheduler made the batch and submit checked the tokens, so this is a bug
	}
	if c.gate.upload != nil {
		c.gate.upload.End(next == len(c.gate.steps))
	}
	c.ended = time.Now()
	c.next, c.took = next, c.ended.Sub(began)
	return f.Lane, next == len(c.gate.steps)
}

// End records where a forward halted, or draws the tokens of one that is complete.
func (c *lane) End(act *sched.Action, done bool, events []sched.Event) []sched.Event {
	c.e.counts.add(act, c.took)
	c.learn(act)
	c.learnTraffic(act, done)
	if act.Kind == sched.Decode {
		l := loadOf(&c.batch)
		c.e.drafting.Stepped(l.Rows, l.Positions, (c.took + c.gap).Seconds())
	}
	if c.e.observe != nil {
		c.report(act, done)
	}
	if !done {
		events[len(events)-1].Ahead = c.gate.next(c.next)
		if j := c.e.jobs[act.ID]; j != nil {
			j.resumeAt = c.next
		}
		return events
	}
	if c.e.Pooled() {
		return c.answer(act, events)
	}
	if j := c.e.jobs[act.ID]; j != nil && act.Kind != sched.Decode {
		j.computed = act.Pos + act.N
		j.out.report(j.computed)
	}
	return c.drawAll(act, events)
}

// reject ends a request that the scheduler refused.
func (e *Engine) reject(a *sched.Action) {
	j, live := e.jobs[a.ID]
	if !live {
		return
	}
	delete(e.jobs, a.ID)
	switch a.Reason {
	case sched.QueueFull:
		j.out.close("", &api.QueueFullError{RetryAfter: a.RetryAfter})
	case sched.TooLong:
		j.out.close("", &api.TooLongError{PromptTokens: len(j.req.Prompt), MaxTokens: j.limit, Context: e.context})
	default:
		j.out.close("", fmt.Errorf("the scheduler refused the request: %s", a.Reason))
	}
}

// startLoad fills the blocks of a request in a goroutine of its own. It is called with e.mu held.
func (e *Engine) startLoad(a *sched.Action) {
	id, at, n, pieces := a.ID, a.Pos, a.N, slices.Clone(a.Pieces)
	ctx, cancel := context.WithCancel(e.stored.ctx)
	j := e.jobs[id]
	if j == nil { // it ended in the same step
		cancel()
		j = &job{}
	}
	j.stopLoad, j.loadBegan = cancel, time.Now()
	e.stored.loads.Go(func() {
		defer cancel()
		err := e.stored.cache.Load(ctx, j.hit, pieces, func(done int) {
			j.out.report(at + (n-at)*done/len(pieces))
		})
		e.endLoad(id, pieces, n-at, err)
		if err == nil {
			e.stored.cache.Loaded(n - at)
		}
	})
}

// endLoad reports the end of a load of tokens to the scheduler.
func (e *Engine) endLoad(id sched.ID, pieces []kvcache.Piece, tokens int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return
	}
	kind := sched.Loaded
	if err != nil {
		kind = sched.LoadFailed
	} else if j := e.jobs[id]; j != nil {
		j.loaded, j.loadTime = tokens, time.Since(j.loadBegan)
	}
	if d := e.onDevice.device; d != nil {
		for _, p := range pieces {
			d.Invalidate(p.Store, p.ID)
		}
	}
	e.driver.Post(sched.Event{Kind: kind, ID: id})
	e.poke()
}

// begin records the start of the first forward of a request and the positions that were cached
// before it. Later calls change nothing.
func (j *job) begin(pos int) {
	if j.started.IsZero() {
		j.started, j.cached = time.Now(), min(pos, len(j.req.Prompt))
	}
}
