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
		for _, r := range act.Rows {
			if j := c.jobs[r.ID]; j != nil {
				events, failed = c.drawRows(j, first, r.N, events, failed)
			}
			first += r.N
		}
	} else if j := c.jobs[act.ID]; j != nil {
		for i, row := range c.batch.LogitRows {
			if act.Last && int(row) == act.N-1 {
				events, failed = c.drawRows(j, i, 1, events, failed)
			} else if c.finite(i) {
				c.score(j, act.Pos+int(row), c.logits(i))
			} else {
				events, failed = c.failRow(j, int(row), events, failed)
				break
			}
		}
	}
	c.fail(failed) // last: the search for the place overwrites the activations
	return events
}

// drawRows continues a request from its rows of logits: the row of its last known token and one for
// each forced token that the forward computed.
func (c *lane) drawRows(
	j *job, first, rows int, events []sched.Event, failed []overflowed,
) ([]sched.Event, []overflowed) {
	for i := first; i < first+rows; i++ {
		if !c.finite(i) {
			return c.failRow(j, int(c.batch.LogitRows[i]), events, failed)
		}
	}
	if j.req.PromptOnly {
		delete(c.jobs, j.id)
		j.out.close(api.FinishLength, nil)
		return append(events, sched.Event{Kind: sched.Finish, ID: j.id}), failed
	}
	return append(events, c.draw(j, rows-1, c.logits(first+rows-1))), failed
}

// failRow ends a request whose numbers overflowed in a row.
func (c *lane) failRow(j *job, row int, events []sched.Event, failed []overflowed) ([]sched.Event, []overflowed) {
	delete(c.jobs, j.id)
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

// draw continues a request after a forward that computed some of its forced tokens: with the next
// forced token, or with one drawn from the logits. Tokens after it that are the only ones allowed
// need no logits. They are sent at once and are the draft of the next decode, which always accepts
// them.
func (e *Engine) draw(j *job, computed int, logits []float32) sched.Event {
	j.known = append(j.known[:0], j.forced[:computed]...)
	if j.forced = j.forced[computed:]; len(j.forced) > 0 {
		j.known = append(j.known, j.forced[0])
		j.forced = j.forced[1:]
		return sched.Event{Kind: sched.Sampled, ID: j.id, Tokens: j.known, Draft: e.draftOf(j.forced)}
	}
	s := drawnToken{id: j.sampler.Next(logits, j.allowed(), e.buffer), at: time.Now()}
	if j.req.Logprobs {
		var own api.TokenLogprob
		own, s.top = e.buffer.Logprobs(logits, s.id, j.req.TopLogprobs)
		s.logprob = own.Logprob
	}
	j.known, j.forced = append(j.known, s.id), j.forcedMemory[:0]
	for !e.deliver(j, s) {
		id, ok := j.only()
		if !ok {
			j.forcedMemory = j.forced
			return sched.Event{Kind: sched.Sampled, ID: j.id, Tokens: j.known, Draft: e.draftOf(j.forced)}
		}
		j.forced = append(j.forced, j.sampler.Count(id))
		s = drawnToken{id: id, at: s.at}
	}
	delete(e.jobs, j.id)
	return sched.Event{Kind: sched.Finish, ID: j.id}
}

// draftOf returns the forced tokens that the next decode may compute: none if the model has
// recurrent states, since a batch then has one row per sequence.
func (e *Engine) draftOf(forced []int32) []int32 {
	if e.runner.assembly.States.Each() > 0 {
		return nil
	}
	return forced
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
