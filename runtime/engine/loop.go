package engine

import (
	"fmt"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// loop drives the scheduler until Close. It runs on worker 0's own thread.
func (e *Engine) loop() {
	defer close(e.ended)
	defer e.endAll()
	e.runner.Lead(func(l *pool.Leader) {
		for {
			act, ok := e.plan()
			if !ok {
				return
			}
			if act == nil {
				<-e.wake
				continue
			}
			e.run(l, act)
		}
	})
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

// step takes in what happened and returns what the scheduler decides.
func (e *Engine) step() []sched.Action {
	actions := e.sched.Step(time.Since(e.begin), e.events)
	clear(e.events) // prompts were copied
	e.events = e.events[:0]
	return actions
}

// plan returns the next forward, nil where there is nothing to compute, and false at the end.
func (e *Engine) plan() (*sched.Action, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return nil, false
	}
	next := e.handle(e.step())
	if next == nil {
		return nil, true
	}
	e.forward = *next // an arrival may step the scheduler meanwhile, which takes its slices back
	e.forward.IDs = append(e.ids[:0], next.IDs...)
	e.ids = e.forward.IDs
	e.busy = true
	e.stop.Store(false)
	e.sched.Fill(&e.batch)
	e.runner.Restrict(e.teams)
	e.begun(&e.forward)
	return &e.forward, true
}

// handle carries refusals and evictions out and returns the forward among the actions, if there is one.
func (e *Engine) handle(actions []sched.Action) *sched.Action {
	for i := range actions {
		a := &actions[i]
		switch a.Kind {
		case sched.Prefill, sched.Resume, sched.Decode:
			return a
		case sched.Preempt:
			if a.ID == e.held.id {
				e.held = halted{} // its blocks are gone: it begins again
			}
		case sched.Reject:
			e.reject(a)
		}
	}
	return nil
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

// begun notes when a request's first forward starts, and whose prefill a cancel may halt.
func (e *Engine) begun(act *sched.Action) {
	e.running = nil
	if act.Kind == sched.Decode {
		return
	}
	if j := e.jobs[act.ID]; j != nil {
		e.running = j
		if j.started.IsZero() {
			j.started, j.cached = time.Now(), min(act.Pos, len(j.req.Prompt))
		}
	}
}

// run executes a forward and draws the tokens it gives.
func (e *Engine) run(l *pool.Leader, act *sched.Action) {
	began := time.Now()
	next, err := e.runner.Forward(l, &e.batch, e.from(act), &e.stop)
	for err == nil && next < e.runner.Ops() && !e.halt(act, next) {
		next, err = e.runner.Forward(l, &e.batch, next, nil)
	}
	e.fail(l, e.settle(act, next, time.Since(began), err))
}

// settle reports a forward that ran up to op next, and returns the jobs that must fail.
func (e *Engine) settle(act *sched.Action, next int, took time.Duration, err error) []unsound {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy, e.running = false, nil
	if err != nil {
		panic(err) // batches come from the scheduler and tokens were checked: this is a bug, not an input
	}
	e.counts.add(act, took)
	if next < e.runner.Ops() {
		e.events = append(e.events, sched.Event{Kind: sched.Stopped})
		return nil
	}
	e.events = append(e.events, sched.Event{Kind: sched.Done})
	return e.drawAll(act)
}

// from is the op a forward begins at: where it halted, if its activations are still held.
func (e *Engine) from(act *sched.Action) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if act.Kind == sched.Resume && act.ID == e.held.id {
		next := e.held.next
		e.held = halted{}
		return next
	}
	if e.held.id == 0 {
		e.runner.Drop()
	}
	return 0
}

// halt notes where a forward halted, and keeps its activations if its request is still wanted. It answers false where
// there is no memory for that: the forward then goes on to its end.
func (e *Engine) halt(act *sched.Action, next int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing || e.jobs[act.ID] == nil {
		return true
	}
	if err := e.runner.Hold(); err != nil {
		return false
	}
	e.held = halted{id: act.ID, next: next}
	return true
}

// drawAll draws a token for each request of the forward that ended its known tokens, and returns
// those for which there is none, because its numbers overflowed.
func (e *Engine) drawAll(act *sched.Action) (failed []unsound) {
	for i, row := range e.batch.LogitRows {
		id := act.ID
		if act.Kind == sched.Decode {
			id = act.IDs[i]
		}
		j := e.jobs[id]
		switch {
		case j == nil:
		case !e.runner.Sound(i):
			e.drop(j)
			failed = append(failed, unsound{j, int(row)})
		default:
			e.draw(j, e.runner.Logits(i))
		}
	}
	return failed
}

func (e *Engine) draw(j *job, logits []float32) {
	s := step{id: j.sampler.next(logits, e.draft), at: time.Now()}
	if j.req.Logprobs {
		var own api.TokenLogprob
		own, s.top = e.draft.logprobs(logits, s.id, j.req.TopLogprobs)
		s.logprob = own.Logprob
	}
	j.made++
	e.counts.GeneratedTokens++
	eog := e.tok != nil && e.tok.IsEOG(s.id)
	var reason api.Finish
	switch {
	case eog && !j.req.IgnoreEOS:
		reason, s.special = api.FinishStop, true
	case j.made == j.limit:
		reason = api.FinishLength
	}
	if reason == "" {
		e.events = append(e.events, sched.Event{Kind: sched.Sampled, ID: j.id, Token: s.id})
		j.out.put(s)
		return
	}
	delete(e.jobs, j.id)
	e.events = append(e.events, sched.Event{Kind: sched.Finish, ID: j.id})
	j.out.put(s)
	j.out.close(reason, nil)
}
