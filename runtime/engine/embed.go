package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/sched"
)

// windowForwards is the number of forwards for which one request submits texts to the scheduler in
// advance. It is small, so that texts of other requests do not wait long.
const windowForwards = 4

// Embed returns the output row of a pooled model for each text of token ids, in order and without
// post-processing. Forwards combine texts of all running requests; the results do not depend on
// that. It returns when all texts are done, or with ctx's error when ctx ends, at the next op of
// the model. Errors are those of Generate, with the number of the text.
func (e *Engine) Embed(ctx context.Context, req api.Embedding) (api.Vectors, error) {
	if err := e.CheckEmbedding(&req); err != nil {
		return api.Vectors{}, err
	}
	if len(req.Prompts) > maxTexts {
		return api.Vectors{}, &api.InvalidError{Message: fmt.Sprintf("%d texts are more than the %d of one request",
			len(req.Prompts), maxTexts)}
	}
	for i, text := range req.Prompts {
		if err := e.readable(text, req.Texts != nil); err != nil {
			return api.Vectors{}, inText(err, i, len(req.Prompts))
		}
	}
	if err := e.admit(); err != nil {
		return api.Vectors{}, err
	}
	defer e.leave()
	r := embedCall{e: e, req: &req, jobs: make([]*job, 0, len(req.Prompts))}
	defer r.cancel()
	return r.run(ctx)
}

// CheckEmbedding returns an error if the model does not compute what the request asks for.
func (e *Engine) CheckEmbedding(req *api.Embedding) error {
	m := e.runner.Model
	switch {
	case !m.Pooled() && req.Rank:
		return api.Unpooled("scores")
	case !m.Pooled():
		return api.Unpooled("embeddings")
	case req.Rank && !m.Scores:
		return &api.InvalidError{Message: "this model makes embeddings and no scores: ask for embeddings, or serve a " +
			"rerank model"}
	case m.Scores && !req.Rank:
		return &api.InvalidError{Message: "this model scores texts and makes no embeddings: ask for a " +
			"reranking, or serve " +
			"an embedding model"}
	}
	return nil
}

// readable returns an error for a text that is empty, exceeds the context or has a token outside
// the vocabulary. encoded says that the text was encoded up to twice the context only, so that its
// length is a lower bound.
func (e *Engine) readable(text []int32, encoded bool) error {
	switch n := len(text); {
	case n == 0:
		return &api.InvalidError{Message: "the text is empty: give at least one token"}
	case n > e.context:
		return &api.TooLongError{PromptTokens: n, Context: e.context, Text: true,
			AtLeast: encoded && n >= 2*e.context}
	}
	return e.inVocabulary(text)
}

// inText adds the number of the text to an error if there are several texts.
func inText(err error, i, of int) error {
	if of < 2 {
		return err
	}
	switch refused := err.(type) {
	case *api.InvalidError:
		return &api.InvalidError{Param: refused.Param, Message: fmt.Sprintf("text %d: %s", i, refused.Message)}
	case *api.TooLongError:
		long := *refused
		long.Of = fmt.Sprintf("text %d", i)
		return &long
	}
	return err
}

// admit counts a call of Embed. It returns *api.QueueFullError at the limit.
func (e *Engine) admit() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.embedCalls >= e.maxEmbeds {
		return &api.QueueFullError{RetryAfter: time.Second}
	}
	e.embedCalls++
	return nil
}

// leave ends a call that admit counted.
func (e *Engine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.embedCalls--
}

// embedCall is a running call of Embed.
type embedCall struct {
	e     *Engine
	req   *api.Embedding
	jobs  []*job // of the submitted texts; nil where a text is done
	ahead int    // tokens of submitted texts that are not done
}

// run submits the texts and collects their rows in order.
func (r *embedCall) run(ctx context.Context) (out api.Vectors, err error) {
	for i, text := range r.req.Prompts {
		if err := r.submit(); err != nil {
			return out, err
		}
		j := r.jobs[i]
		if err := j.ended(ctx); err != nil {
			return out, err
		}
		r.ahead -= len(text)
		if i == 0 {
			out.Queued = j.queued()
		}
		out.Rows = append(out.Rows, j.vector)
		out.Tokens += len(text)
		out.CachedTokens += j.cached
		r.jobs[i] = nil
	}
	return out, nil
}

// ended waits until a job has ended and returns its error, or ctx's error if ctx ends first.
func (j *job) ended(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.out.ready:
		}
		if _, end := j.out.take(); end != nil {
			return end.err
		}
	}
}

// submit passes texts to the scheduler while they fit the window, at least one.
func (r *embedCall) submit() error {
	window := windowForwards * r.e.runner.Plan.Chunk
	for next := len(r.jobs); next < len(r.req.Prompts); next++ {
		text := r.req.Prompts[next]
		if r.ahead > 0 && r.ahead+len(text) > window {
			break
		}
		own := &api.Request{Prompt: slices.Clone(text), MaxTokens: 1, Class: r.req.Class, Priority: r.req.Priority,
			Salt: r.req.Salt}
		j := &job{req: own, limit: 1}
		j.out.ready = make(chan struct{}, 1)
		if err := r.e.submit(j); err != nil {
			return err
		}
		r.jobs = append(r.jobs, j)
		r.ahead += len(text)
	}
	return nil
}

// cancel ends the jobs that have not ended.
func (r *embedCall) cancel() {
	for _, j := range r.jobs {
		if j != nil {
			r.e.cancel(j)
		}
	}
}

// answer passes its output row to each text that ended in the forward.
func (c *lane) answer(act *sched.Action, events []sched.Event) []sched.Event {
	spans := c.batch.Spans
	at := 0
	for i, row := range c.batch.LogitRows {
		for int(row) >= spans[at].Row+spans[at].Rows {
			at++
		}
		j := c.e.jobs[act.Rows[at].ID]
		if j == nil {
			continue // canceled
		}
		delete(c.e.jobs, j.id)
		events = append(events, sched.Event{Kind: sched.Finish, ID: j.id})
		if !c.finite(i) {
			j.out.close("", &forward.OverflowError{})
			continue
		}
		j.vector = slices.Clone(c.logits(i))
		j.out.close(api.FinishStop, nil)
	}
	return events
}
