package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandwich/runtime/api"
)

// follow calls emit for each token of a job until the job ends, ctx ends or emit returns an error.
func (e *Engine) follow(ctx context.Context, j *job, emit func(api.Token) error) (api.Result, error) {
	res, reported := api.Result{PromptTokens: len(j.req.Prompt)}, 0
	for {
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-j.out.ready:
		}
		reported = e.progress(j, reported, &res)
		steps, end := j.out.take()
		for _, s := range steps {
			if !s.prompt {
				e.countToken(j, s, &res)
			}
			switch err := emit(s.token()); {
			case errors.Is(err, api.ErrStop):
				return e.finish(res, j, api.FinishStop), nil
			case err != nil:
				return res, err
			}
		}
		if end == nil {
			continue
		}
		if end.err != nil {
			return res, end.err
		}
		return e.finish(res, j, end.reason), nil
	}
}

// countToken adds a generated token of a job to its result.
func (e *Engine) countToken(j *job, s drawnToken, res *api.Result) {
	if res.Tokens == 0 {
		res.FirstToken = s.at.Sub(j.arrived)
		e.remember(j)
		e.notePrompt(j)
	}
	if j.req.Queued != nil {
		j.output = append(j.output, s.id)
	}
	res.Tokens++
	res.Total = s.at.Sub(j.arrived)
}

// remember records the tokens of a request whose client asked for its queue position, so that later
// prompts can be compared with them (recentTexts).
func (e *Engine) remember(j *job) {
	if j.req.Queued == nil {
		return
	}
	ids := j.req.Prompt // a private copy
	if len(j.output) > 0 {
		ids = slices.Concat(ids, j.output)
	}
	e.recent.add(j.req.Salt, ids)
}

// finish returns the result of a job that ended for a reason.
func (e *Engine) finish(res api.Result, j *job, reason api.Finish) api.Result {
	e.notePrompt(j)
	res.Finish = reason
	res.CachedTokens = j.cached
	e.times(&res, j)
	return res
}

// times sets the times of a result, and the counts that the loop may still change. The answer may
// be incomplete.
func (e *Engine) times(res *api.Result, j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	res.DraftedTokens, res.AcceptedTokens = j.drafts.Drafted, min(j.drafts.Accepted, res.Tokens)
	res.Arrived, res.Started, res.Queued = j.arrived, !j.started.IsZero(), j.queued()
	res.LoadedTokens, res.LoadBegan, res.LoadTime = j.loaded, j.loadBegan, j.loadTime
}

// progress reports how many tokens of the prompt are computed, until the first token is generated,
// if they are more than were reported before. It returns the largest number reported.
func (e *Engine) progress(j *job, reported int, res *api.Result) int {
	done := min(j.out.computedPrompt(), len(j.req.Prompt))
	if done <= reported {
		return reported // a load failed, its readers reported out of order, or the request was preempted
	}
	if j.req.Progress != nil && res.Tokens == 0 {
		e.mu.Lock() // the first forward of a prompt that is being loaded has not begun
		cached := j.cached
		e.mu.Unlock()
		j.req.Progress(api.Progress{Total: len(j.req.Prompt), Done: done, Cached: cached, Took: time.Since(j.arrived)})
	}
	return done
}
