package engine

import (
	"context"

	"sandwich/runtime/sched"
)

// prepare calls the request's Prepare to make the constraint of a job when the scheduler has queued
// it, and then lets the job run. It returns the error of Prepare, the refusal of the scheduler or
// the error of ctx.
func (e *Engine) prepare(ctx context.Context, j *job) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	j.out.onEnd(stop)
	select {
	case <-j.placed:
	case <-ctx.Done():
		return j.out.cause(ctx)
	}
	c, err := j.req.Prepare(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return j.out.cause(ctx)
		}
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[j.id] == j { // else the job has ended, and its mailbox holds the reason
		j.req.Constraint = c
		e.driver.Post(sched.Event{Kind: sched.Ready, ID: j.id})
		e.poke()
	}
	return nil
}

// cause returns the error with which the job ended, or else the error of ctx.
func (m *mailbox) cause(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil && m.end.err != nil {
		return m.end.err
	}
	return ctx.Err()
}
