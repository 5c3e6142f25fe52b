package engine

import (
	"fmt"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// loop drives the scheduler until Close, on the thread of worker 0.
func (e *Engine) loop() {
	defer close(e.ended)
	defer e.endAll()
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
		w.e.cores.ended = time.Time{} // the idle time is no overhead between forwards
		<-w.e.wake
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return !w.e.closing
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

// lane runs the forwards of one lane of the scheduler: on the cores, from the thread of worker 0,
// or on a device, in a goroutine of its own.
type lane struct {
	*Engine
	device  *offload.Runner // nil: the lane runs on the cores
	batch   kvcache.Batch   // of the forward in flight
	set     int             // of activations of that forward
	base    int             // of the sets on the cores that are the lane's own
	onCores bool            // the logits of the last forward of the device's lane are on the cores
	again   bool            // the lane has no sets of its own: a resumed forward starts again
	gate    forwardGate     // of the forward in flight
	costs   *cost.Table     // of ops, measured in this process
	cuts    [sched.Sets][]uint16
	margin  margin
	upload  [sched.Sets]*offload.Upload // of halted forwards and the one in flight, to the device
	next    int                         // step from which the forward runs, then the step at which it ended
	took    time.Duration               // duration of the last forward
	ended   time.Time                   // end of the last forward; zero after the engine was idle
	gap     time.Duration               // between the last two forwards
}

// Carry carries out the scheduler's actions that run no forward. A preempted request needs no
// action here, since its prefill starts again.
func (c *lane) Carry(a *sched.Action) {
	switch a.Kind {
	case sched.Halt:
		c.gate.stop.Store(true)
	case sched.Reject:
		c.reject(a)
	case sched.Load:
		c.startLoad(a)
	case sched.Placed:
		if j := c.jobs[a.ID]; j != nil {
			close(j.placed)
		}
	}
}

// Begin makes the batch of a forward and records the start of requests whose first forward it is.
// That may be a decode: a prompt of one token, or with all tokens but the last cached, needs no
// prefill.
func (c *lane) Begin(act *sched.Action) {
	c.gate.stop.Store(false)
	c.sched.Fill(act.Lane, &c.batch)
	c.set, c.next = int(act.Set), 0
	j := c.jobs[act.ID]
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
		if j := c.jobs[r.ID]; j != nil {
			j.begin(c.batch.Spans[i].Pos)
		}
	}
}

// begin records the start of the first forward of a request and the positions that were cached
// before it. Later calls change nothing.
func (j *job) begin(pos int) {
	if j.started.IsZero() {
		j.started, j.cached = time.Now(), min(pos, len(j.req.Prompt))
	}
}

// queued returns how long the request waited for its first forward; 0 if none began.
func (j *job) queued() time.Duration {
	if j.started.IsZero() {
		return 0
	}
	return max(0, j.started.Sub(j.arrived))
}

// Run executes a forward from the op at which it halted, or from the first.
func (c *lane) Run(f *sched.Action) (lane sched.LaneID, done bool) {
	began := time.Now()
	if c.gap = 0; !c.ended.IsZero() {
		c.gap = began.Sub(c.ended)
	}
	c.runner.useTeams(c.watch.team())
	c.runner.Use(c.base + c.set)
	c.runner.Cut(c.cuts[c.set])
	c.gate.upload = c.beginUpload()
	c.gate.start(c.next)
	next, err := c.runner.Forward(c.leader, &c.batch, c.next, &c.gate)
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
	c.counts.add(act, c.took)
	c.learn(act)
	if act.Kind == sched.Decode {
		l := loadOf(&c.batch)
		c.drafting.Stepped(l.Rows, l.Positions, (c.took + c.gap).Seconds())
	}
	if c.observe != nil {
		c.report(act, done)
	}
	if !done {
		events[len(events)-1].Ahead = c.gate.next(c.next)
		if j := c.jobs[act.ID]; j != nil {
			j.resumeAt = c.next
		}
		return events
	}
	if c.Pooled() {
		return c.answer(act, events)
	}
	if j := c.jobs[act.ID]; j != nil && act.Kind != sched.Decode {
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
