package engine

import (
	"context"
	"slices"
	"time"

	"sandwich/runtime/api"
)

// follow passes a job's tokens on until it ends, or until nobody wants more of them.
func (e *Engine) follow(ctx context.Context, j *job, emit func(api.Token) error) (api.Result, error) {
	text := newTranscript(e.tok, j.req)
	res, told := api.Result{PromptTokens: len(j.req.Prompt)}, 0
	for {
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-j.out.ready:
		}
		told = j.progress(told, &res)
		steps, end := j.out.take()
		for _, s := range steps {
			if s.prompt {
				send, _ := text.push(s)
				if err := emit(send); err != nil {
					return res, err
				}
				continue
			}
			if res.Tokens == 0 {
				res.FirstToken = s.at.Sub(j.arrived)
				e.remember(j)
			}
			if j.req.Queued != nil {
				j.said = append(j.said, s.id)
			}
			res.Tokens++
			res.Total = s.at.Sub(j.arrived)
			send, stopped := text.push(s)
			if err := emit(send); err != nil {
				return res, err
			}
			if stopped {
				res.StopString = text.stop.found
				return e.finish(res, j, api.FinishStop), nil
			}
		}
		if end == nil {
			continue
		}
		if end.err != nil {
			return res, end.err
		}
		rest, stopped := text.flush()
		if stopped {
			end.reason, res.StopString = api.FinishStop, text.stop.found
		}
		if rest != "" {
			if err := emit(api.Token{TokenLogprob: api.TokenLogprob{ID: api.NoToken}, Text: rest}); err != nil {
				return res, err
			}
		}
		return e.finish(res, j, end.reason), nil
	}
}

// remember keeps the computed tokens of a request, so that later ones can be compared with them.
func (e *Engine) remember(j *job) {
	if j.req.Queued == nil {
		return
	}
	ids := j.req.Prompt // which no one changes
	if len(j.said) > 0 {
		ids = slices.Concat(ids, j.said)
	}
	e.recent.add(j.req.Salt, ids)
}

func (e *Engine) finish(res api.Result, j *job, reason api.Finish) api.Result {
	res.Finish = reason
	res.CachedTokens = j.cached
	res.Arrived, res.Queued = j.arrived, j.queued()
	return res
}

// progress tells how far the prompt is, as long as nothing else can be told; it returns up to where
// it did.
func (j *job) progress(told int, res *api.Result) int {
	read := min(j.out.told(), len(j.req.Prompt))
	if j.req.Progress != nil && res.Tokens == 0 && read > told {
		j.req.Progress(api.Progress{Total: len(j.req.Prompt), Done: read, Cached: j.cached,
			Took: time.Since(j.arrived)})
	}
	return read
}
