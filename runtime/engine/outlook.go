package engine

import (
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
)

// outlook is how a job that was submitted stands: its place, and when its first token is due by the
// table of costs. Beside its own prompt there are those that are being read, and between their
// chunks a step of those that have their first token.
func (e *Engine) outlook(j *job) (q api.Queue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q.Ahead, q.Wait = e.sched.Place(j.id)
	cached := 0
	if !j.req.OfPrompt {
		cached = e.sched.Cached(j.req.Salt, j.req.Prompt)
	}
	took, chunks := e.reading(cached, len(j.req.Prompt))
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
		took += time.Duration(chunks) * e.cores.costs.Forward(cost.Decode, others)
	}
	q.First = q.Wait + took
	return q
}

// reading predicts the time of a prompt from one position to another, and its chunks.
func (e *Engine) reading(from, to int) (took time.Duration, chunks int) {
	for ; from < to; chunks++ {
		n := min(e.runner.Plan.Chunk, to-from)
		l := cost.Span(from, n)
		if from += n; from == to {
			l.Heads = 1
		}
		took += e.cores.costs.Forward(cost.Prefill, l)
	}
	return took, chunks
}
