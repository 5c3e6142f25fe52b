package engine

import (
	"fmt"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// loop drives the scheduler until Close. It runs on worker 0's own thread.
func (e *Engine) loop() {
	defer close(e.ended)
	defer e.endAll()
	e.runner.Lead(func(l *pool.Leader) {
		e.cores.leader = l
		e.driver.Drive()
	})
}

// wall is the clock of an engine: time since its start.
type wall struct{ e *Engine }

func (w wall) Now() time.Duration { return time.Since(w.e.begin) }

func (w wall) Wait(idle bool) bool {
	if idle {
		w.e.cores.ended = time.Time{} // what follows did not wait for the engine
		<-w.e.wake
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return !w.e.closing
}

// endAll tells every live request that its tokens end here, and every later one.
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

// internalError says what the loop or a worker panicked with.
func internalError(p any) error {
	if w, ok := p.(*pool.Panic); ok {
		return &InternalError{Value: w.Value, Stack: w.Stack}
	}
	return &InternalError{Value: p}
}

// cores is the lane of the cores: it runs forwards on the runner, from worker 0's thread.
type cores struct {
	*Engine
	leader *pool.Leader
	pace   pace        // of the forward in flight
	costs  *cost.Table // of ops, as they were in this process
	cuts   [sched.Sets][]uint16
	margin margin
	next   int           // step at which the forward goes on, and where it ended
	took   time.Duration // the last forward
	ended  time.Time     // of the last forward; zero after a rest
	gap    time.Duration // between the two last ones
}

// Carry carries refusals and halts out. Of who was preempted nothing has to be forgotten:
// it begins again.
func (c *cores) Carry(a *sched.Action) {
	switch a.Kind {
	case sched.Halt:
		c.pace.stop.Store(true)
	case sched.Reject:
		c.reject(a)
	case sched.Placed:
		if j := c.jobs[a.ID]; j != nil {
			close(j.placed)
		}
	}
}

// Begin makes the batch of a forward and notes the requests whose first forward it is. That may
// be a decode: a prompt of which all but the last token is cached, or that has one token, needs
// no prefill.
func (c *cores) Begin(act *sched.Action) {
	c.pace.stop.Store(false)
	c.sched.Fill(act.Lane, &c.batch)
	c.runner.restrict(c.watch.team())
	c.runner.Use(int(act.Set))
	c.next = 0
	j := c.jobs[act.ID]
	if j != nil && act.Kind == sched.Resume {
		c.next = j.halted
	}
	c.plan(act)
	if j != nil && act.Kind != sched.Decode {
		j.begin(act.Pos)
	}
	for i, r := range act.Rows { // of a decode batch, or of a prefill of texts
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
func (c *cores) Run(f *sched.Action) (lane sched.LaneID, done bool) {
	began := time.Now()
	if c.gap = 0; !c.ended.IsZero() {
		c.gap = began.Sub(c.ended)
	}
	c.pace.start(c.next)
	next, err := c.runner.Forward(c.leader, &c.batch, c.next, &c.pace)
	if err != nil {
		panic(err) // batches come from the scheduler and tokens were checked: this is a bug, not an input
	}
	c.ended = time.Now()
	c.next, c.took = next, c.ended.Sub(began)
	return f.Lane, next == len(c.pace.ahead)
}

// End notes where a forward halted, or draws the tokens it gives.
func (c *cores) End(act *sched.Action, done bool, events []sched.Event) []sched.Event {
	c.counts.add(act, c.took)
	c.learn(act)
	if c.observe != nil {
		c.tell(act, done)
	}
	if !done {
		events[len(events)-1].Ahead = c.pace.next(c.next)
		if j := c.jobs[act.ID]; j != nil {
			j.halted = c.next
		}
		return events
	}
	if c.Pooled() {
		return c.answer(act, events)
	}
	if j := c.jobs[act.ID]; j != nil && act.Kind != sched.Decode {
		j.read = act.Pos + act.N
		j.out.tell(j.read)
	}
	return c.drawAll(act, events)
}

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
