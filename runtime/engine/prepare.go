package engine

import (
	"context"
	"fmt"

	"sandwich/runtime/api"
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

// allowed returns the tokens that the constraint of the request allows next; nil allows all.
func (j *job) allowed() []uint64 {
	if j.req.Constraint == nil {
		return nil
	}
	return j.req.Constraint.Allowed(j.limit - j.generated)
}

// only returns the next token if the constraint allows no other and its logits are not requested.
func (j *job) only() (int32, bool) {
	if j.req.Constraint == nil || j.req.Logprobs {
		return 0, false
	}
	return j.req.Constraint.Only(j.limit - j.generated)
}

// follows passes a token to the constraint of the request. It reports whether the answer is
// complete with it.
func (j *job) follows(id int32) (whole bool, err error) {
	c := j.req.Constraint
	if c == nil {
		return false, nil
	}
	if err := c.Accept(id); err != nil {
		const text = "the vocabulary of the model cannot spell an answer of this form: %v"
		return false, &api.InvalidError{Param: j.req.Format.Param, Message: fmt.Sprintf(text, err)}
	}
	return c.MustEnd(), nil
}
