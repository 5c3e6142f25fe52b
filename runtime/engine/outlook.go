package engine

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/phase"
)

// outlook returns the place of a job that was submitted and predicts when its first token is due.
// The table of costs predicts its own prompt, the prompts that are computed before it and, between
// their chunks, a step of the requests that have their first token.
func (e *Engine) outlook(j *job) (q api.Queue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q.Ahead, q.Wait = e.sched.Place(j.id)
	took, chunks := e.reading(j.hit, len(j.req.Prompt))
	var others cost.Load
	for _, o := range e.jobs {
		switch {
		case o == j || o.started.IsZero() || o.req.Class > j.req.Class:
		case o.made > 0:
			others.Rows++
			others.Heads++
			others.Positions += len(o.req.Prompt) + o.made
		case e.sched.Precedes(o.id, j.id):
			more, n := e.reading(o.read, len(o.req.Prompt))
			took, chunks = took+more, chunks+n
		}
	}
	if others.Rows > 0 {
		took += time.Duration(chunks) * e.cores.costs.Forward(phase.Decode, others)
	}
	q.First = q.Wait + took
	return q
}

// lookUp sets how much of the prompt of a job is cached. It is called before the job is submitted,
// with e.mu held: later the job's own blocks count.
func (e *Engine) lookUp(j *job) {
	if !j.req.OfPrompt {
		j.hit = e.sched.Cached(j.req.Salt, j.req.Prompt)
	}
}

// reading predicts the time of a prompt from one position to another, and its chunks.
func (e *Engine) reading(from, to int) (took time.Duration, chunks int) {
	for ; from < to; chunks++ {
		n := min(e.runner.Plan.Chunk, to-from)
		l := cost.Span(from, n)
		if from += n; from == to {
			l.Heads = 1
		}
		took += e.cores.costs.Forward(phase.Prefill, l)
	}
	return took, chunks
}
