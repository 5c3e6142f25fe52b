package engine

import (
	"sandwich/runtime/cost"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
	"sandwich/runtime/speculate"
)

// Speculation configures drafts. The tokens of answers do not depend on it.
type Speculation struct {
	Drafter speculate.Drafter // nil: no tokens are drafted
	// Depth is the number of drafted tokens to verify for each sequence: 0 chooses it by measured
	// times and acceptance, a negative one drafts nothing.
	Depth int
	// StepRatios are the measured times of decode steps of 1, 2, ... rows relative to one row. nil
	// derives them from the ceilings of the machine.
	StepRatios []float64
}

// DraftCounts are totals of a drafter since the start of the engine.
type DraftCounts struct {
	Name     string
	Drafted  int64 // tokens that were verified
	Accepted int64 // of them, tokens that were right
	Bytes    int64 // memory of the drafter
}

// drafting is the state of speculation in an engine. The engine's lock guards it.
type drafting struct {
	drafter    speculate.Drafter // nil: no tokens are drafted
	controller *speculate.Controller
	total      DraftCounts
}

// jobDrafts is the state of speculation of one request.
type jobDrafts struct {
	text       speculate.Text // nil: no tokens are drafted
	acceptance speculate.Acceptance
	class      int     // of the last draft
	draft      []int32 // the last draft: tokens that were sent, then proposed ones
	drafted    int     // proposed tokens that were verified
	accepted   int     // of them
}

// newDrafting returns the state of speculation for decode batches of up to rows rows, whose times
// costs predicts.
func newDrafting(o Speculation, r *Runner, costs *cost.Table, rows int) *drafting {
	d := &drafting{drafter: o.Drafter}
	if d.drafter != nil {
		d.total.Name = d.drafter.Name()
	}
	ratios := make([]float64, rows)
	one := costs.Forward(phase.Decode, cost.Load{Rows: 1, Heads: 1})
	for i := range ratios {
		ratios[i] = float64(costs.Forward(phase.Decode, cost.Load{Rows: i + 1, Heads: i + 1})) / float64(one)
	}
	if n := min(len(o.StepRatios), rows); n > 0 {
		beyond := o.StepRatios[n-1] / ratios[n-1]
		copy(ratios, o.StepRatios)
		for i := n; i < rows; i++ {
			ratios[i] *= beyond
		}
	}
	d.controller = speculate.NewController(ratios, o.Depth, r.assembly.States.Each() > 0)
	return d
}

// SetDraftDepth changes Speculation.Depth from the next step on, for benchmarks. Depth 0 continues
// with the times and the acceptance learned so far.
func (e *Engine) SetDraftDepth(depth int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drafting.controller.SetDepth(depth)
}

// allot divides free rows of a decode batch among drafts, for the scheduler.
func (d *drafting) allot(drafts []sched.Draft, free int) { d.controller.Allot(drafts, free) }

// counts returns the totals of the drafters.
func (d *drafting) counts() []DraftCounts {
	if d.drafter == nil {
		return nil
	}
	total := d.total
	total.Bytes = d.drafter.Bytes()
	return []DraftCounts{total}
}

// open starts drafts for a request.
func (d *drafting) open(j *job) {
	if d.drafter != nil && !j.req.PromptOnly {
		j.drafts.text = d.drafter.Open(j.req.Salt, j.req.Prompt)
	}
}

// closeDrafts ends the drafts of a request, which the loop no longer uses.
func (j *job) closeDrafts() {
	if j.drafts.text != nil {
		j.drafts.text.Close()
	}
}

// propose returns the event with which a request continues after its known tokens: it drafts the
// tokens that were sent and are not computed yet, which are certain, and proposed ones.
func (e *Engine) propose(j *job) sched.Event {
	d, sent := &j.drafts, j.sent.list()
	event := sched.Event{Kind: sched.Sampled, ID: j.id, Tokens: j.known, Certain: len(sent)}
	d.draft = append(d.draft[:0], sent...)
	if d.text != nil {
		most := min(e.drafting.controller.Rows()-1, j.limit-j.generated)
		d.draft, d.class = d.text.Draft(d.draft, most)
		event.Chance = e.drafting.controller.Chance(&d.acceptance, d.class)
	}
	event.Draft = d.draft
	return event
}

// verified records the outcome of a draft of n proposed tokens, of which `tried` were compared with
// drawn ones: all up to the first that was rejected, or up to the end of the answer.
func (e *Engine) verified(j *job, n, tried, accepted int) {
	if n <= 0 {
		return
	}
	d := &j.drafts
	d.drafted, d.accepted = d.drafted+n, d.accepted+accepted
	e.drafting.total.Drafted += int64(n)
	e.drafting.total.Accepted += int64(accepted)
	e.drafting.controller.Verified(&d.acceptance, d.class, tried, accepted)
}

// stepped records the time of a decode step, with the time between it and the last forward.
func (c *lane) stepped(act *sched.Action) {
	if act.Kind == sched.Decode && c.drafting.drafter != nil {
		l := loadOf(&c.batch)
		c.drafting.controller.Stepped(l.Rows, l.Positions, c.took+c.gap)
	}
}

// tokenQueue holds tokens in the order in which they are taken. It keeps its memory.
type tokenQueue struct {
	tokens []int32
	taken  int
}

func (q *tokenQueue) list() []int32 { return q.tokens[q.taken:] }
func (q *tokenQueue) len() int      { return len(q.tokens) - q.taken }
func (q *tokenQueue) put(id int32)  { q.tokens = append(q.tokens, id) }

// take removes the first token.
func (q *tokenQueue) take() int32 {
	id := q.tokens[q.taken]
	if q.taken++; q.taken == len(q.tokens) {
		q.tokens, q.taken = q.tokens[:0], 0
	}
	return id
}
