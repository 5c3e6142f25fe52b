package engine

import (
	"context"

	"sandwich/runtime/sched"
)

// prepare makes the constraint of a job once the scheduler has a place for it, and lets it run.
// Errors are those of Prepare, the refusal of the scheduler, and the error of ctx.
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
	if e.jobs[j.id] == j { // else it ended meanwhile, which its mailbox says
		j.req.Constraint = c
		e.driver.Post(sched.Event{Kind: sched.Ready, ID: j.id})
		e.poke()
	}
	return nil
}

// cause returns why the tokens ended, or else why ctx did.
func (m *mailbox) cause(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil && m.end.err != nil {
		return m.end.err
	}
	return ctx.Err()
}
