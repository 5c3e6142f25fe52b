package engine

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/sched"
)

// drawAll draws a token for each request of the forward that ended its known tokens, and fails
// those for which there is none, because its numbers overflowed.
func (c *cores) drawAll(act *sched.Action, events []sched.Event) []sched.Event {
	var failed []unsound
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
			} else if c.runner.sound(i) {
				c.score(j, act.Pos+int(row), c.runner.Logits(i))
			} else {
				events, failed = c.lose(j, int(row), events, failed)
				break
			}
		}
	}
	c.fail(failed) // last: looking for the place takes the activations of the others
	return events
}

// drawRows goes on with a request that has some rows of logits: that behind its known tokens, and
// one behind each token that was the only one allowed and that the forward had room for.
func (c *cores) drawRows(j *job, first, rows int, events []sched.Event, failed []unsound) ([]sched.Event, []unsound) {
	for i := first; i < first+rows; i++ {
		if !c.runner.sound(i) {
			return c.lose(j, int(c.batch.LogitRows[i]), events, failed)
		}
	}
	if j.req.PromptOnly {
		delete(c.jobs, j.id)
		j.out.close(api.FinishLength, nil)
		return append(events, sched.Event{Kind: sched.Finish, ID: j.id}), failed
	}
	return append(events, c.draw(j, rows-1, c.runner.Logits(first+rows-1))), failed
}

// lose ends a request that has no numbers to go on with.
func (c *cores) lose(j *job, row int, events []sched.Event, failed []unsound) ([]sched.Event, []unsound) {
	delete(c.jobs, j.id)
	return append(events, sched.Event{Kind: sched.Finish, ID: j.id}), append(failed, unsound{j, row})
}

// score gives the log probability of the token of the prompt behind a position, once: positions are
// computed again after a preemption.
func (e *Engine) score(j *job, pos int, logits []float32) {
	if pos < j.scored || pos+1 >= len(j.req.Prompt) {
		return
	}
	j.scored = pos + 1
	own, top := e.draft.logprobs(logits, j.req.Prompt[pos+1], j.req.TopLogprobs)
	j.out.put(step{id: own.ID, logprob: own.Logprob, top: top, at: time.Now(), prompt: true})
}

// draw goes on with a request of which some forced tokens were computed: with the next forced one,
// or by drawing from the logits behind all of them. Tokens behind it that are the only ones allowed
// need no logits: they go out at once, and are the draft of the next decode, which always holds.
func (e *Engine) draw(j *job, computed int, logits []float32) sched.Event {
	j.known = append(j.known[:0], j.forced[:computed]...)
	if j.forced = j.forced[computed:]; len(j.forced) > 0 {
		j.known = append(j.known, j.forced[0])
		j.forced = j.forced[1:]
		return sched.Event{Kind: sched.Sampled, ID: j.id, Tokens: j.known, Draft: e.rides(j.forced)}
	}
	s := step{id: j.sampler.next(logits, j.allowed(), e.draft), at: time.Now()}
	if j.req.Logprobs {
		var own api.TokenLogprob
		own, s.top = e.draft.logprobs(logits, s.id, j.req.TopLogprobs)
		s.logprob = own.Logprob
	}
	j.known, j.forced = append(j.known, s.id), j.line[:0]
	for !e.goOn(j, s) {
		id, ok := j.only()
		if !ok {
			j.line = j.forced
			return sched.Event{Kind: sched.Sampled, ID: j.id, Tokens: j.known, Draft: e.rides(j.forced)}
		}
		j.forced = append(j.forced, j.sampler.took(id))
		s = step{id: id, at: s.at}
	}
	delete(e.jobs, j.id)
	return sched.Event{Kind: sched.Finish, ID: j.id}
}

// rides are the forced tokens that the next decode may compute: none where the model keeps states,
// of which a batch has one row a sequence.
func (e *Engine) rides(forced []int32) []int32 {
	if e.runner.assembly.States.Each() > 0 {
		return nil
	}
	return forced
}

// goOn gives a token out. It tells whether the request ends with it.
func (e *Engine) goOn(j *job, s step) bool {
	j.made++
	e.counts.GeneratedTokens++
	eog := e.tok != nil && e.tok.IsEOG(s.id)
	whole, err := j.follows(s.id)
	var reason api.Finish
	switch {
	case err != nil:
		j.out.close("", err)
		return true
	case eog && (!j.req.IgnoreEOS || j.req.Constraint != nil):
		reason, s.special = api.FinishStop, true
	case whole:
		reason = api.FinishStop
	case j.made == j.limit:
		reason = api.FinishLength
	}
	j.out.put(s)
	if reason != "" {
		j.out.close(reason, nil)
	}
	return reason != ""
}
