package engine

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/phase"
)

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
		took += time.Duration(chunks) * e.cores.costs.Forward(phase.Decode, others)
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
		took += e.prefillCosts().Forward(phase.Prefill, l)
	}
	return took, chunks
}
