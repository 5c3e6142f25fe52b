package engine

import (
	"fmt"
	"time"

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

// endAll tells every live request that its tokens end here.
func (e *Engine) endAll() {
	failure := ErrClosed
	if p := recover(); p != nil {
		failure = fmt.Errorf("the engine stopped after an internal error: %v", p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = failure
	for id, j := range e.jobs {
		delete(e.jobs, id)
		j.out.close("", failure)
	}
}

// plan takes in what happened and returns the next forward, nil where there is nothing to compute, and false at the end.
func (e *Engine) plan() (*sched.Action, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return nil, false
	}
	actions := e.sched.Step(time.Since(e.begin), e.events)
	e.events = e.events[:0]
	next := e.handle(actions)
	if next == nil {
		return nil, true
	}
	e.forward = *next // an arrival may step the scheduler meanwhile, which takes its slices back
	e.forward.IDs = append(e.ids[:0], next.IDs...)
	e.ids = e.forward.IDs
	e.busy = true
	e.stop.Store(false)
	e.sched.Fill(&e.batch)
	e.begun(&e.forward)
	return &e.forward, true
}

// handle carries refusals out and returns the forward among the actions, if there is one.
func (e *Engine) handle(actions []sched.Action) *sched.Action {
	for i := range actions {
		a := &actions[i]
		switch a.Kind {
		case sched.Prefill, sched.Resume, sched.Decode:
			return a
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
		j.out.close("", &QueueFullError{RetryAfter: a.RetryAfter})
	case sched.TooLong:
		j.out.close("", &TooLongError{Prompt: len(j.req.Prompt), MaxTokens: j.limit, Context: e.context})
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
			j.started = time.Now()
		}
	}
}

// run executes a forward and draws the tokens it gives.
func (e *Engine) run(l *pool.Leader, act *sched.Action) {
	prefill := act.Kind != sched.Decode
	began := time.Now()
	next, err := e.runner.Forward(l, &e.batch, 0, &e.stop)
	took := time.Since(began)

	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy, e.running = false, nil
	if err != nil {
		panic(err) // batches come from the scheduler and tokens were checked: this is a bug, not an input
	}
	if prefill {
		e.counts.Prefills++
		e.counts.PrefillTime += took
	} else {
		e.counts.Decodes++
		e.counts.DecodeTime += took
	}
	if next < e.runner.Ops() {
		e.events = append(e.events, sched.Event{Kind: sched.Stopped})
		return
	}
	e.events = append(e.events, sched.Event{Kind: sched.Done})
	e.drawAll(act, prefill)
}

// drawAll draws a token for each request of the forward that ended its known tokens.
func (e *Engine) drawAll(act *sched.Action, prefill bool) {
	for i := range e.batch.LogitRows {
		id := act.ID
		if !prefill {
			id = act.IDs[i]
		}
		if j := e.jobs[id]; j != nil {
			e.draw(j, e.runner.Logits(i))
		}
	}
}

func (e *Engine) draw(j *job, logits []float32) {
	s := step{id: j.sampler.next(logits, e.draft), at: time.Now()}
	if j.req.Logprobs {
		var own TokenLogprob
		own, s.top = e.draft.logprobs(logits, s.id, j.req.Top)
		s.logprob = own.Logprob
	}
	j.made++
	e.counts.GeneratedTokens++
	eog := e.tok != nil && e.tok.IsEOG(s.id)
	reason := ""
	switch {
	case eog && !j.req.IgnoreEOS:
		reason, s.special = "stop", true
	case j.made == j.limit:
		reason = "length"
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

// Stats is a snapshot for metrics and health.
type Stats struct {
	Counts
	Scheduler sched.Stats
	Pool      pool.Stats
	Memory    Memory
	Failed    error
}

// Stats may be called at any time.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Stats{Counts: e.counts, Scheduler: e.sched.Stats(), Pool: e.runner.pool.Stats(), Memory: e.runner.Memory(), Failed: e.failed}
}
