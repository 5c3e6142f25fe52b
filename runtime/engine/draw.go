package engine

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/sched"
)

// drawAll draws a token for each request whose known tokens the forward has computed, and ends the
// requests whose numbers overflowed. It appends the events for the scheduler.
func (c *lane) drawAll(act *sched.Action, events []sched.Event) []sched.Event {
	var failed []overflowed
	if act.Kind == sched.Decode {
		first := 0
		for i, r := range act.Rows { // rows that are computed again have no logits
			n, end := 0, c.batch.Spans[i].Row+r.N
			for first+n < len(c.batch.LogitRows) && int(c.batch.LogitRows[first+n]) < end {
				n++
			}
			if j := c.e.jobs[r.ID]; j != nil {
				events, failed = c.drawRows(j, first, n, events, failed)
			}
			first += n
		}
	} else if j := c.e.jobs[act.ID]; j != nil {
		for i, row := range c.batch.LogitRows {
			if act.Last && int(row) == act.N-1 {
				events, failed = c.drawRows(j, i, 1, events, failed)
			} else if c.finite(i) {
				c.e.score(j, act.Pos+int(row), c.logits(i))
			} else {
				events, failed = c.failRow(j, int(row), events, failed)
				break
			}
		}
	}
	c.fail(failed) // last: the search for the place overwrites the activations
	return events
}

// drawRows continues a request from its rows of logits: the row of its last known token, and one
// for each token of its draft that the forward computed. It accepts drafted tokens as long as they
// equal those that are drawn, each from the row before it.
func (c *lane) drawRows(
	j *job, first, rows int, events []sched.Event, failed []overflowed,
) ([]sched.Event, []overflowed) {
	j.known = j.known[:0]
	certain := min(rows-1, j.drafts.Waiting())
	for i := range rows {
		if !c.finite(first + i) {
			return c.failRow(j, int(c.batch.LogitRows[first+i]), events, failed)
		}
		if j.req.PromptOnly {
			delete(c.e.jobs, j.id)
			j.out.close(api.FinishLength, nil)
			return append(events, sched.Event{Kind: sched.Finish, ID: j.id}), failed
		}
		if j.drafts.Waiting() == 0 && c.e.draw(j, c.logits(first+i)) {
			c.e.drafting.Verified(&j.drafts, rows-1-certain, i-certain, i-certain)
			delete(c.e.jobs, j.id)
			return append(events, sched.Event{Kind: sched.Finish, ID: j.id, Tokens: j.known}), failed
		}
		j.known = append(j.known, j.drafts.Take())
		if i+1 == rows || c.batch.Tokens[c.batch.LogitRows[first+i+1]] != j.known[i] {
			c.e.drafting.Verified(&j.drafts, rows-1-certain, min(rows-1, i+1)-certain, i-certain)
			break
		}
	}
	next := sched.Event{Kind: sched.Sampled, ID: j.id, Tokens: j.known}
	c.e.drafting.Propose(&j.drafts, &next, j.limit-j.generated-1) // a step also draws the token after a draft
	return append(events, next), failed
}

// failRow ends a request whose numbers overflowed in a row.
func (c *lane) failRow(j *job, row int, events []sched.Event, failed []overflowed) ([]sched.Event, []overflowed) {
	delete(c.e.jobs, j.id)
	return append(events, sched.Event{Kind: sched.Finish, ID: j.id}), append(failed, overflowed{j, row})
}

// score sends the log probability of the prompt token that follows a position. It does so once per
// position, although positions are computed again after a preemption.
func (e *Engine) score(j *job, pos int, logits []float32) {
	if pos < j.scored || pos+1 >= len(j.req.Prompt) {
		return
	}
	j.scored = pos + 1
	own, top := e.buffer.Logprobs(logits, j.req.Prompt[pos+1], j.req.TopLogprobs)
	j.out.put(drawnToken{id: own.ID, logprob: own.Logprob, top: top, at: time.Now(), prompt: true})
}

// draw draws the next token of a request from logits and sends it. Tokens after it that are the
// only ones allowed need no logits: they are sent at once. draw reports whether the request ends.
func (e *Engine) draw(j *job, logits []float32) (ended bool) {
	s := drawnToken{id: j.sampler.Next(logits, j.allowed(), e.buffer), at: time.Now()}
	if j.req.Logprobs {
		var own api.TokenLogprob
		own, s.top = e.buffer.Logprobs(logits, s.id, j.req.TopLogprobs)
		s.logprob = own.Logprob
	}
	for !e.deliver(j, s) {
		j.drafts.Send(s.id)
		id, ok := j.only()
		if !ok {
			return false
		}
		s = drawnToken{id: j.sampler.Count(id), at: s.at}
	}
	return true
}

// deliver sends a token to its request. It reports whether the request ends with it.
func (e *Engine) deliver(j *job, s drawnToken) bool {
	j.generated++
	e.counts.GeneratedTokens++
	isEnd := e.isEndToken(s.id)
	whole, err := j.follows(s.id)
	var reason api.Finish
	switch {
	case err != nil:
		j.out.close("", err)
		return true
	case isEnd && (!j.req.IgnoreEOS || j.req.Constraint != nil):
		reason, s.end = api.FinishStop, true
	case whole:
		reason = api.FinishStop
	case j.generated == j.limit:
		reason = api.FinishLength
	}
	j.out.put(s)
	if reason != "" {
		j.out.close(reason, nil)
	}
	return reason != ""
}

// SetDraftDepth changes drafting.Options.Depth from the next step on, for benchmarks. Depth 0
// continues with the times and the acceptance learned so far.
func (e *Engine) SetDraftDepth(depth int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drafting.SetDepth(depth)
}

// overflowed is a job whose row of the last forward is not finite.
type overflowed struct {
	job *job
	row int // of the batch
}

// fail ends jobs whose numbers overflowed, each with the place of the overflow. It keeps the lock
// for some milliseconds, since the sequences hold their blocks only until the next step of the
// scheduler.
func (c *lane) fail(list []overflowed) {
	for _, u := range list {
		for i := range c.batch.Spans {
			s := &c.batch.Spans[i]
			if u.row < s.Row || u.row >= s.Row+s.Rows {
				continue
			}
			token := func(pos int) (int32, bool) {
				if at := s.Row + pos - s.Pos; at >= s.Row && at < s.Row+s.Rows {
					return c.batch.Tokens[at], true
				}
				if pos < len(u.job.req.Prompt) {
					return u.job.req.Prompt[pos], true
				}
				return 0, false
			}
			err := c.e.runner.Overflow(c.e.leader, c.withCores, s.Tables, s.Pos+u.row-s.Row, token)
			u.job.out.close("", err)
		}
	}
}
