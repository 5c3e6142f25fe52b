// Package drafting has the state of speculative decoding of an engine and of its requests. Except
// for Open, the engine's lock guards it.
package drafting

import (
	"crypto/sha256"

	"sandwich/runtime/sched"
	"sandwich/runtime/speculate"
)

// Options configures drafts. The tokens of answers do not depend on it.
type Options struct {
	Drafter speculate.Drafter // nil: no tokens are drafted
	// Depth is the number of drafted tokens to verify for each sequence: 0 chooses it by measured
	// times and acceptance, a negative one drafts nothing.
	Depth int
	// Curves are the measured times of decode steps by context length, ascending. nil derives them
	// from the ceilings of the machine.
	Curves []speculate.Curve
	// Rollback is how recurrent states return to the last accepted token of a draft.
	Rollback Rollback
}

// Rollback is a way to continue with a recurrent state after a draft that was rejected in part.
type Rollback uint8

const (
	RollbackByCost Rollback = iota // the way that is predicted to take less time
	RollbackReplay                 // the accepted tokens are computed again
	RollbackCopy                   // the state after each drafted token is copied, as far as memory lasts
)

// Counts are totals of a drafter since the start of the engine.
type Counts struct {
	Name     string
	Drafted  int64 // tokens that were verified
	Accepted int64 // of them, tokens that were right
	Bytes    int64 // memory of the drafter
}

// Drafting is the state of an engine.
type Drafting struct {
	drafter    speculate.Drafter
	controller *speculate.Controller
	total      Counts
}

// New returns the state for decode batches of up to as many rows as the predicted curves have,
// which are used where the options have no measured times. again tells that accepted tokens of a
// draft that is rejected in part must be computed again.
func New(o Options, predicted []speculate.Curve, again bool) *Drafting {
	d := &Drafting{drafter: o.Drafter}
	if d.drafter != nil {
		d.total.Name = d.drafter.Name()
	}
	curves := predicted
	if len(o.Curves) > 0 {
		curves = make([]speculate.Curve, len(o.Curves))
		for i, c := range o.Curves {
			curves[i] = speculate.Curve{Positions: c.Positions, Measured: c.Measured,
				Times: continued(c.Times, predicted[0].Times)}
		}
	}
	d.controller = speculate.NewController(curves, o.Depth, again)
	return d
}

// continued returns measured times with as many elements as predicted ones, in proportion to which
// they continue.
func continued(measured, predicted []float64) []float64 {
	n := min(len(measured), len(predicted))
	out := append(measured[:n:n], predicted[n:]...)
	for i := n; i < len(out); i++ {
		out[i] *= measured[n-1] / predicted[n-1]
	}
	return out
}

// Allot divides free rows of a decode batch among drafts, for the scheduler.
func (d *Drafting) Allot(drafts []sched.Draft, free int) { d.controller.Allot(drafts, free) }

// Rows returns the most rows of a decode batch.
func (d *Drafting) Rows() int { return d.controller.Rows() }

// SetDepth changes Options.Depth.
func (d *Drafting) SetDepth(depth int) { d.controller.SetDepth(depth) }

// Stepped records a decode step; see speculate.Controller.
func (d *Drafting) Stepped(rows, positions int, seconds float64) {
	if d.drafter != nil {
		d.controller.Stepped(rows, positions, seconds)
	}
}

// Counts returns the totals of the drafters.
func (d *Drafting) Counts() []Counts {
	if d.drafter == nil {
		return nil
	}
	total := d.total
	total.Bytes = d.drafter.Bytes()
	return []Counts{total}
}

// Open starts drafts for a request. It may be called concurrently with everything.
func (d *Drafting) Open(r *Request, salt [sha256.Size]byte, prompt []int32) {
	if d.drafter != nil {
		r.text = d.drafter.Open(salt, prompt)
	}
}

// Propose sets the tokens of the event with which a request continues: its draft begins with the
// tokens that were sent and are not computed yet, which are certain. At most `limit` follow.
func (d *Drafting) Propose(r *Request, e *sched.Event, limit int) {
	sent := r.sent()
	e.Certain = len(sent)
	r.draft = append(r.draft[:0], sent...)
	if r.text != nil {
		r.draft, r.class = r.text.Draft(r.draft, max(0, min(d.Rows()-1, limit)))
		e.Chance = d.controller.Chance(&r.acceptance, r.class)
	}
	e.Draft = r.draft
}

// Verified records the outcome of a draft of n proposed tokens, of which `tried` were compared with
// drawn ones: all up to the first that was rejected, or up to the end of the answer.
func (d *Drafting) Verified(r *Request, n, tried, accepted int) {
	if n <= 0 {
		return
	}
	r.Drafted, r.Accepted = r.Drafted+n, r.Accepted+accepted
	d.total.Drafted += int64(n)
	d.total.Accepted += int64(accepted)
	d.controller.Verified(&r.acceptance, r.class, tried, accepted)
}

// Request is the state of a request. The zero value drafts nothing; see Open.
type Request struct {
	Drafted  int // proposed tokens that were verified
	Accepted int // of them

	text       speculate.Text // nil: no tokens are drafted
	acceptance speculate.Acceptance
	class      int     // of the last draft
	draft      []int32 // the last draft

	tokens []int32 // that were sent; those before taken are computed
	taken  int
}

// Send records a token that was sent.
func (r *Request) Send(id int32) {
	r.tokens = append(r.tokens, id)
	if r.text != nil {
		r.text.Append(id)
	}
}

// Waiting returns the number of tokens that were sent and are not computed yet.
func (r *Request) Waiting() int { return len(r.tokens) - r.taken }

func (r *Request) sent() []int32 { return r.tokens[r.taken:] }

// Take removes and returns the first token that was sent and is not computed yet.
func (r *Request) Take() int32 {
	id := r.tokens[r.taken]
	if r.taken++; r.taken == len(r.tokens) {
		r.tokens, r.taken = r.tokens[:0], 0
	}
	return id
}

// Close ends the drafts of a request, which the engine no longer uses.
func (r *Request) Close() {
	if r.text != nil {
		r.text.Close()
	}
}
