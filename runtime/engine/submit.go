package engine

import (
	"fmt"
	"math"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// admissible checks a request against the context and returns how many tokens it may generate.
func (e *Engine) admissible(req *api.Request) (limit int, err error) {
	n := len(req.Prompt)
	if e.Pooled() {
		return 0, &api.InvalidError{Message: "this model makes embeddings or scores and generates no text"}
	}
	if n == 0 {
		return 0, &api.InvalidError{Message: "the prompt is empty: give at least one token"}
	}
	if n >= e.context {
		return 0, &api.TooLongError{PromptTokens: n, MaxTokens: req.MaxTokens, Context: e.context}
	}
	if err := e.inVocabulary(req.Prompt); err != nil {
		return 0, err
	}
	vocab := e.runner.Model.Dims.Vocab
	for id := range req.Sampling.Bias {
		if id < 0 || int(id) >= vocab {
			const text = "holds token id %d, outside the vocabulary of %d"
			return 0, &api.InvalidError{Param: "logit_bias", Message: fmt.Sprintf(text, id, vocab)}
		}
	}
	if req.PromptOnly {
		return 1, nil // no token is drawn
	}
	limit = e.context - n
	if req.MaxTokens > 0 {
		limit = min(limit, req.MaxTokens)
	}
	return limit, nil
}

// submit passes a job to the scheduler, which may refuse it before submit returns.
func (e *Engine) submit(j *job) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return e.failed
	}
	if e.closing {
		return api.ErrClosed
	}
	if err := e.watch.refused(); err != nil {
		return err
	}
	e.lastID++
	j.id = e.lastID
	e.jobs[j.id], j.arrived = j, time.Now()
	if j.req.OfPrompt {
		j.out.put(drawnToken{id: j.req.Prompt[0], logprob: float32(math.NaN()), prompt: true})
	}
	if j.req.Queued != nil {
		e.lookUp(j)
	}
	e.counts.Requests++
	e.counts.PromptTokens += int64(len(j.req.Prompt))
	e.driver.Post(sched.Event{
		Kind: sched.Arrive, ID: j.id, Class: j.req.Class, Priority: j.req.Priority, Prompt: j.req.Prompt,
		MaxTokens: j.limit, Salt: j.req.Salt, Ends: append(e.ends(j.req.Prompt), j.req.Marks...),
		Logits: j.req.OfPrompt, Pending: j.placed != nil, Stored: e.worthLoading(j),
	})
	e.compileAhead(j)
	e.poke()
	return nil
}

// queueEstimate returns the queue position of a submitted job and predicts the time to its first
// token: the wait for a place, the prefill of its prompt and of the prompts before it and, after
// each chunk of them, one decode step of the running requests.
func (e *Engine) queueEstimate(j *job) (q api.Queue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q.Ahead, q.Wait = e.sched.Place(j.id)
	took, chunks := e.prefill(max(j.cachedOnArrival, j.storedOnArrival), len(j.req.Prompt))
	if j.storedOnArrival > 0 {
		took += e.loadTime(j, j.cachedOnArrival)
	}
	var others cost.Load
	for _, o := range e.jobs {
		switch {
		case o == j || o.started.IsZero() || o.req.Class > j.req.Class:
		case o.generated > 0:
			others.Rows++
			others.Heads++
			others.Positions += len(o.req.Prompt) + o.generated
		case e.sched.Precedes(o.id, j.id):
			more, n := e.prefill(o.computed, len(o.req.Prompt))
			took, chunks = took+more, chunks+n
		}
	}
	if others.Rows > 0 {
		took += time.Duration(chunks) * e.costsOf(phase.Decode).Forward(phase.Decode, others)
	}
	q.First = q.Wait + took
	return q
}

// lookUp sets how many prompt tokens of a job are cached. It is called with e.mu held, before the
// job is submitted: later the job's own blocks would count.
func (e *Engine) lookUp(j *job) {
	if !j.req.OfPrompt {
		j.cachedOnArrival = e.sched.Cached(j.req.Salt, j.req.Prompt)
	}
}

// prefill predicts the time of computing a prompt from one position to another, and the number of
// chunks.
func (e *Engine) prefill(from, to int) (took time.Duration, chunks int) {
	for ; from < to; chunks++ {
		n := min(e.runner.Plan.Chunk, to-from)
		l := cost.Span(from, n)
		if from += n; from == to {
			l.Heads = 1
		}
		took += e.costsOf(phase.Prefill).Forward(phase.Prefill, l)
	}
	return took, chunks
}

// worthLoading returns up to which position the prompt of a job is to be loaded: 0 if the cache has
// as much of it, or if computing is predicted to be faster. It is called with e.mu held.
func (e *Engine) worthLoading(j *job) int {
	n := j.hit.Positions
	if n == 0 {
		return 0
	}
	at := e.sched.Cached(j.req.Salt, j.req.Prompt)
	if n <= at {
		return 0
	}
	if computing, _ := e.prefill(at, n); e.loadTime(j, at) >= computing && !e.stored.always {
		return 0
	}
	j.storedOnArrival = n
	return n
}

// loadTime predicts the time of loading the stored prefix of a job from a position on.
func (e *Engine) loadTime(j *job, at int) time.Duration {
	n := int64(j.hit.Positions)
	return e.stored.cache.Predict(j.hit.Bytes * max(0, n-int64(at)) / n)
}

// queued returns how long the request waited for its first forward; 0 if none began.
func (j *job) queued() time.Duration {
	if j.started.IsZero() {
		return 0
	}
	return max(0, j.started.Sub(j.arrived))
}
