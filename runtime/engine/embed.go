package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/sched"
	"sandwich/runtime/tokenizer"
)

// Texts that a pooled model reads at once at most, beside those of Options.Parallel: short ones
// fill a forward only together.
const leastTexts = 64

// maxTexts is the most texts of one request.
const maxTexts = 1 << 20

// windowForwards is how many forwards' rows of one request stand in the scheduler at once: one runs
// while the next one waits, and what others ask for comes soon after.
const windowForwards = 4

// Pooled tells an engine of a model that makes vectors or scores of texts: Embed, not Generate.
func (e *Engine) Pooled() bool { return e.runner.Model.Pooled() }

// Embed reads texts and returns what the model makes of each, raw, in their order: forwards take on
// texts of all requests that are there, and none of them changes another's numbers. It returns when
// all are read, or with ctx's error when ctx ends, at the next op of the model. Refusals are those
// of Generate, with the number of the text; of the texts only the token ids are read.
func (e *Engine) Embed(ctx context.Context, req api.Embedding) (api.Vectors, error) {
	if err := e.Reads(&req); err != nil {
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
	r := reading{e: e, req: &req, jobs: make([]*job, 0, len(req.Prompts))}
	defer r.cancel()
	return r.run(ctx)
}

// Reads refuses what the model does not make of texts.
func (e *Engine) Reads(req *api.Embedding) error {
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

// readable checks a text against the context and the vocabulary. Of one that was encoded here the
// tokens are counted as far as Prompts does.
func (e *Engine) readable(text []int32, encoded bool) error {
	switch n := len(text); {
	case n == 0:
		return &api.InvalidError{Message: "the text is empty: it comes to no token"}
	case n > e.context:
		return &api.TooLongError{PromptTokens: n, Context: e.context, Text: true,
			AtLeast: encoded && n >= 2*e.context}
	}
	return e.inVocabulary(text)
}

// inText names the text that is refused where there are several.
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

// admit counts a request in, unless as many run and wait as may.
func (e *Engine) admit() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.readers >= e.most {
		return &api.QueueFullError{RetryAfter: time.Second}
	}
	e.readers++
	return nil
}

func (e *Engine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readers--
}

// reading is a request for vectors under way.
type reading struct {
	e     *Engine
	req   *api.Embedding
	jobs  []*job // of the texts that were submitted
	ahead int    // tokens of those that are not read yet
}

func (r *reading) run(ctx context.Context) (out api.Vectors, err error) {
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

// ended waits until a text was read, and says why it was not.
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

// submit hands on as many texts as there is room for, one at least.
func (r *reading) submit() error {
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

// cancel withdraws what is still live.
func (r *reading) cancel() {
	for _, j := range r.jobs {
		if j != nil {
			r.e.cancel(j)
		}
	}
}

// answer gives each text that ended in the forward what the model made of it.
func (c *cores) answer(act *sched.Action, events []sched.Event) []sched.Event {
	spans := c.batch.Spans
	at := 0
	for i, row := range c.batch.LogitRows {
		for int(row) >= spans[at].Row+spans[at].Rows {
			at++
		}
		j := c.jobs[act.Rows[at].ID]
		if j == nil {
			continue // nobody wants it any more
		}
		delete(c.jobs, j.id)
		events = append(events, sched.Event{Kind: sched.Finish, ID: j.id})
		if !c.runner.sound(i) {
			j.out.close("", &OverflowError{})
			continue
		}
		j.vector = slices.Clone(c.runner.Logits(i))
		j.out.close(api.FinishStop, nil)
	}
	return events
}

// Prompts turns the texts of a request into tokens, on as many cores as there are, unless ctx ends.
// It needs Options.Tokenizer. Errors are those of Prompt.
func (e *Engine) Prompts(ctx context.Context, r *api.Embedding) ([][]int32, error) {
	if r.Prompts != nil {
		return e.cut(r, r.Prompts), nil
	}
	out, errs := make([][]int32, len(r.Texts)), make([]error, len(r.Texts))
	// Only what is longer than the context has to be counted, up to twice of it.
	o := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true, Limit: 2 * e.context}
	e.each(len(r.Texts), func(i int) {
		out[i], errs[i] = e.inTurn(ctx, r.Texts[i], func() ([]int32, error) {
			if r.Rank {
				return e.tok.EncodePair(ctx, r.Query, r.Texts[i], o.Limit)
			}
			return e.tok.EncodeContext(ctx, nil, r.Texts[i], o)
		})
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if r.Rank && slices.ContainsFunc(out, func(ids []int32) bool { return len(ids) > e.context }) {
		return e.cutPairs(ctx, r, out, o.Limit)
	}
	return e.cut(r, out), nil
}

// cutPairs truncates the documents of pairs where that is wanted, and refuses a query that leaves
// no room for any.
func (e *Engine) cutPairs(ctx context.Context, r *api.Embedding, pairs [][]int32, limit int) ([][]int32, error) {
	alone, err := e.tok.EncodePair(ctx, r.Query, "", limit)
	if n := len(alone); err == nil && n >= e.context {
		err = &api.TooLongError{PromptTokens: n, Context: e.context, Text: true, AtLeast: n >= limit,
			Of: "the query without a document", Param: "query"}
	}
	for i := 0; r.Truncate && err == nil && i < len(pairs); i++ {
		pairs[i], err = e.tok.TruncatePair(ctx, pairs[i], r.Query, e.context)
	}
	return pairs, err
}

// fewTexts are encoded by the goroutine that asks.
const fewTexts = 8

// each calls f for the numbers up to n.
func (e *Engine) each(n int, f func(i int)) {
	if n <= fewTexts {
		for i := range n {
			f(i)
		}
		return
	}
	var group sync.WaitGroup
	const goroutines = 4
	for g := range goroutines {
		group.Go(func() {
			for i := g; i < n; i += goroutines {
				f(i)
			}
		})
	}
	group.Wait()
}

// cut truncates texts where that is wanted.
func (e *Engine) cut(r *api.Embedding, texts [][]int32) [][]int32 {
	if r.Truncate {
		for i := range texts {
			texts[i] = e.tok.Truncate(texts[i], e.context)
		}
	}
	return texts
}
