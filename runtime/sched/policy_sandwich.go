package sched

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sandwich/runtime/phase"
)

func init() { policies[DefaultPolicy] = func() policy { return &sandwich{lastReactive: -1} } }

// sandwich is the policy of Agent.xpu sections 4.4 and 4.5. Prefill chunks and decode batches
// alternate, so that neither a long prompt nor a full decode batch starves the other. Reactive
// prefill waits only for reactive decoding. Proactive prefill fills idle time, runs in quanta next
// to reactive decoding, and halts for a reactive arrival.
//
// Quanta are paid for by credit. Each reactive step earns Config.Quantum of its predicted time, but
// not of more time than it took. A quantum costs the time that it took, so one that overran because
// an op was predicted wrongly is followed by fewer: the share holds whatever the predictions are.
//
// Progress of proactive requests is guaranteed under any reactive load. The oldest one that waits
// starts within Config.Aging and one reactive service time from when it became the oldest, and a
// request that has started continues. Half of Config.Aging before the first limit, what keeps the
// request waiting gets more time: prefills share one set of activations, so the first quantum of
// one waits for the chunk of another. From then on reactive prompts earn credit too, the oldest
// proactive sequence has a row in every decode batch, and the waiting request is admitted beyond
// MaxRunning and has the next chunk.
type sandwich struct {
	base
	credit       time.Duration // time that proactive prefill may use; negative: a debt
	step         time.Duration // earned by the last reactive step, which bounds credit
	saved        time.Duration // earned by reactive prompts while progress is guaranteed
	rowTime      time.Duration // recent time per row of a proactive prompt, including halts; 0: unknown
	lastFirst    time.Duration // when a proactive request last had its first quantum
	lastReactive time.Duration // start of the last reactive forward; negative: none yet
}

const (
	// worstDebt bounds debts and earnings of one forward, so that a clock that jumps or a machine
	// that is suspended neither stops proactive work for long nor lets it run for long.
	worstDebt = time.Second

	// chunksPerAging is the number of chunks of proactive prompts that take Config.Aging while
	// another request waits for its first quantum.
	chunksPerAging = 8

	// minChunk is the smallest chunk of rows that is chosen to end a chunk early. Smaller ones
	// take about as long.
	minChunk = 32
)

func (*sandwich) rules() rules { return rules{priorities: true} }

func (*sandwich) halts(_ *Scheduler, r *request) bool { return r.class == Reactive }

func (p *sandwich) next(s *Scheduler, w work) (*request, time.Duration) {
	proactive := w.prefill[Proactive]
	alternate := s.sinceChunk < s.cfg.DecodesBetweenChunks
	switch r := w.prefill[Reactive]; {
	case r != nil:
		// A quantum may run between reactive prompts, but not before a prompt that has just
		// arrived: an entire reactive forward must have started since then.
		if r.progress <= p.lastReactive {
			if o, quantum := p.betweenPrompts(s, w); quantum > 0 {
				return o, quantum
			}
		}
		if alternate && (w.decode[Reactive] > 0 || p.agedDecodes(s, w)) {
			return nil, 0
		}
		return r, 0
	case w.decode[Reactive] > 0:
		if proactive == nil || s.cfg.NoPiggyback && !proactive.promoted ||
			!p.affords(s, proactive, p.credit) {
			return nil, 0
		}
		return proactive, p.credit
	case w.decode[Proactive] > 0 && alternate:
		return nil, 0
	}
	return proactive, 0
}

// betweenPrompts chooses what an aged or guaranteed quantum between reactive prompts is spent on: a
// prefill, or nil for a decode batch, whichever is older, but the prefill if a request waits for
// its set of activations. The quantum is 0 if there is nothing to spend.
func (p *sandwich) betweenPrompts(s *Scheduler, w work) (prefill *request, quantum time.Duration) {
	r, credit := w.prefill[Proactive], p.credit+p.saved
	switch {
	case credit <= 0:
		return nil, 0
	case p.guaranteed(s):
		anyDue := slices.ContainsFunc(s.running, func(o *request) bool { return p.due(s, o) })
		if d := oldestDecode(s); d != nil && (r == nil || !anyDue && d.before(r)) {
			r = nil
		} else if r == nil || !p.affords(s, r, credit) {
			return nil, 0
		}
	case r == nil || !r.promoted || !p.affords(s, r, credit):
		return nil, 0
	}
	p.credit, p.saved = credit, 0
	return r, credit
}

// affords reports whether a proactive prefill can run on a credit. An op that is predicted to take
// more than the largest credit runs when the credit is full: the prediction may be wrong, and the
// debt bounds its cost.
func (p *sandwich) affords(s *Scheduler, r *request, credit time.Duration) bool {
	return credit > 0 && (r != s.suspended || credit >= min(r.ahead, s.cfg.Bound))
}

// agedDecodes reports whether a proactive sequence that has aged, or any while progress is
// guaranteed, is ready to decode.
func (p *sandwich) agedDecodes(s *Scheduler, w work) bool {
	if w.decode[Proactive] == 0 {
		return false
	}
	guaranteed := p.guaranteed(s)
	return slices.ContainsFunc(s.running, func(r *request) bool {
		return r.class == Proactive && s.decodes(r) && (guaranteed || r.promoted)
	})
}

// oldestDecode returns the first proactive sequence that is ready to decode on the lane of
// prefills, or nil.
func oldestDecode(s *Scheduler) *request {
	if !s.sharedLane() {
		return nil
	}
	for _, r := range s.running {
		if r.class == Proactive && r.decodable() && !s.cfg.Texts {
			return r
		}
	}
	return nil
}

// batch takes all sequences unless a reactive request runs. Then it pauses proactive sequences
// until the predicted time of a step meets Config.TPOT, or the batch has MixedCap rows: those of
// the highest priority value, of them the longest, of them the newest (adaptive decode batching).
// The oldest aged sequence, or the oldest of all while progress is guaranteed, has a row beyond
// that.
func (p *sandwich) batch(s *Scheduler, ready []*request) (rows []*request, limit int) {
	if !slices.ContainsFunc(s.running, func(r *request) bool { return r.class == Reactive && r.pending() > 0 }) {
		return inOrder(s, ready)
	}
	guaranteed := p.guaranteed(s)
	if guaranteed && countReactive(ready) == 0 {
		return inOrder(s, ready)
	}
	i := slices.IndexFunc(ready, func(r *request) bool { return r.class == Proactive && (r.promoted || guaranteed) })
	if i < 0 {
		return p.mixed(s, ready, nil)
	}
	return p.mixed(s, ready, ready[i]) // still in order of precedence: the oldest
}

func (p *sandwich) mixed(s *Scheduler, ready []*request, aged *request) (batch []*request, limit int) {
	place := func(r *request) int {
		switch {
		case r == aged:
			return 1
		case r.class == Reactive:
			return 0
		}
		return 2
	}
	slices.SortFunc(ready, func(a, b *request) int {
		switch {
		case a == aged || b == aged || a.class != b.class:
			return place(a) - place(b)
		case a.class == Reactive:
			return precedence(a, b)
		}
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.known, b.known), cmp.Compare(a.order, b.order))
	})
	n, rows, positions := 0, 0, 0
	add := func(r *request) {
		rows, positions = rows+r.pending(), positions+r.pending()*r.known
		n++
	}
	for n < len(ready) && (ready[n].class == Reactive || ready[n] == aged) {
		add(ready[n])
	}
	for n < min(len(ready), s.cfg.MaxRunning) {
		r := ready[n]
		if n > 0 && (s.cfg.NoPiggyback || !p.fits(s, rows+r.pending(), positions+r.pending()*r.known)) {
			break
		}
		add(r)
	}
	if ready[n-1].class == Reactive {
		return ready[:n], s.cfg.BatchRows
	}
	limit = rows
	for each := positions / rows; limit < s.cfg.BatchRows && p.fits(s, limit+1, positions+each); limit++ {
		positions += each
	}
	return ready[:n], limit
}

// fits reports whether a decode batch of both classes may have so many rows, which attend to so
// many positions together.
func (p *sandwich) fits(s *Scheduler, rows, positions int) bool {
	if s.cfg.TPOT > 0 {
		if d := s.predicted(rows, positions); d != unpredicted {
			return d <= s.cfg.TPOT
		}
	}
	return rows <= s.cfg.MixedCap
}

// overdue reports whether r has waited so long that the progress of all proactive requests is
// guaranteed: half of Config.Aging as the oldest that has not started, or Config.Aging without
// progress.
func (p *sandwich) overdue(s *Scheduler, r *request) bool {
	switch {
	case s.cfg.Aging < 0 || r.class != Proactive:
		return false
	case r.begun:
		return s.now-r.progress >= s.cfg.Aging
	}
	return s.now-max(r.progress, p.lastFirst) >= s.cfg.Aging/2
}

func (p *sandwich) due(s *Scheduler, r *request) bool { return !r.begun && p.overdue(s, r) }

// guaranteed reports whether the progress of proactive requests is guaranteed now.
func (p *sandwich) guaranteed(s *Scheduler) bool {
	if q := s.queue[Proactive]; len(q) > 0 && p.overdue(s, q[0]) {
		return true
	}
	return slices.ContainsFunc(s.running, func(r *request) bool { return r.pending() > 0 && p.overdue(s, r) })
}

// chunk shortens the chunks of proactive prompts while another proactive request waits for its
// first quantum: a chunk that has started keeps the set of activations. It uses the recent time per
// row, which is unknown before the first chunk.
func (p *sandwich) chunk(s *Scheduler, r *request) int {
	if r.class != Proactive || s.cfg.Aging < 0 || s.cfg.Whole || s.cfg.Texts || !p.contended(s) {
		return math.MaxInt
	}
	waits := func(o *request) bool { return o != r && o.class == Proactive && !o.begun }
	if !slices.ContainsFunc(s.queue[Proactive], waits) && !slices.ContainsFunc(s.running, waits) {
		return math.MaxInt
	}
	if p.rowTime == 0 {
		return 2 * minChunk
	}
	return max(minChunk, int(s.cfg.Aging/chunksPerAging/p.rowTime)/minChunk*minChunk)
}

// contended reports whether reactive requests are live or were recently. Without them a chunk takes
// no longer than its own time, and the longest chunk is the fastest.
func (p *sandwich) contended(s *Scheduler) bool {
	return s.lives[Reactive] > 0 || p.lastReactive >= 0 && s.now-p.lastReactive < s.cfg.Aging
}

// started notes first quanta, which are progress, and the predicted time of forwards that earn.
func (p *sandwich) started(s *Scheduler, f *flight) {
	for _, r := range f.reqs {
		if f.prefill && r.class == Proactive && !r.begun {
			r.begun, r.progress, p.lastFirst = true, s.now, s.now
		}
	}
	switch {
	case f.lane != s.laneOf[phase.Prefill] && !f.exclusive:
	case !f.prefill:
		f.earning = p.reactiveStep(s, f.reqs)
	case f.reqs[0].class == Reactive:
		f.earning = s.predicted(1, f.reqs[0].seq.Len()+f.reqs[0].rows)
	}
}

// reactiveStep predicts the time of the reactive rows of a batch alone; 0 if there are none.
func (p *sandwich) reactiveStep(s *Scheduler, batch []*request) time.Duration {
	rows, positions := 0, 0
	for _, r := range batch {
		if r.class == Reactive {
			rows, positions = rows+r.rows, positions+r.rows*r.known
		}
	}
	if rows == 0 {
		return 0
	}
	return s.predicted(rows, positions)
}

// landed accounts for the time of a forward.
func (p *sandwich) landed(s *Scheduler, f *flight, done bool) {
	took := s.now - f.began
	onPrefills := f.lane == s.laneOf[phase.Prefill] || f.exclusive
	if onPrefills && len(f.reqs) > 0 && f.reqs[0].class == Reactive {
		p.lastReactive = f.began
	}
	switch {
	case f.quantum:
		p.credit = max(p.credit-took, -worstDebt)
		over := max(0, p.credit-p.maxCredit(s))
		p.credit, p.saved = p.credit-over, p.saved+over
	case !onPrefills || f.earning == 0:
	case f.prefill:
		p.earnByPrompt(s, f.earning, took)
	default:
		step := min(f.earning, took)
		if p.guaranteed(s) { // the share of reactive rows, whatever was predicted
			reactive, all := rowsOf(f.reqs)
			step = max(step, took*time.Duration(reactive)/time.Duration(all))
		}
		p.step = p.share(s, min(step, worstDebt))
		p.credit = min(p.credit+p.step, p.maxCredit(s))
	}
	for _, r := range f.reqs {
		if done && f.prefill && !r.dead {
			p.timeRows(s, r)
		}
	}
}

// earnByPrompt adds the earnings of a chunk of a reactive prompt. While an aged prompt waits, that
// is the earnings of one step, since a chunk may take as long as many. While progress is guaranteed
// it is the whole share, which is spent between prompts only.
func (p *sandwich) earnByPrompt(s *Scheduler, step, took time.Duration) {
	agedPrompt := func(r *request) bool { return r.class == Proactive && r.promoted && r.pending() > 1+r.again }
	switch {
	case p.guaranteed(s):
		earned := p.share(s, min(took, worstDebt))
		paid := min(earned, max(0, -p.credit)) // a debt is paid first
		p.credit, p.saved = p.credit+paid, min(p.saved+earned-paid, worstDebt)
	case slices.ContainsFunc(s.running, agedPrompt):
		p.credit = min(p.credit+p.share(s, min(step, took, s.cfg.Bound)), p.maxCredit(s))
	}
}

// share is the time of proactive work for a time of reactive work.
func (p *sandwich) share(s *Scheduler, d time.Duration) time.Duration {
	return time.Duration(s.cfg.Quantum * float64(d))
}

// maxCredit bounds the credit for quanta next to decoding.
func (p *sandwich) maxCredit(s *Scheduler) time.Duration { return max(p.step, s.cfg.Bound) }

// timeRows updates the time per row of proactive prompts by a chunk that ended: the mean of the
// last value and the new one.
func (p *sandwich) timeRows(s *Scheduler, r *request) {
	if r.class != Proactive || r.rows < minChunk {
		return
	}
	took := (s.now - r.chunk) / time.Duration(r.rows)
	if p.rowTime > 0 {
		took = (took + p.rowTime) / 2
	}
	p.rowTime = max(took, 1)
}

// aged forgives a debt: it was caused by other requests.
func (p *sandwich) aged(*Scheduler, *request) { p.credit = max(p.credit, 0) }

// rowsOf returns the rows of the reactive requests of a forward, and those of all of them.
func rowsOf(reqs []*request) (reactive, all int) {
	for _, r := range reqs {
		if all += r.rows; r.class == Reactive {
			reactive += r.rows
		}
	}
	return reactive, all
}

// countReactive returns the number of reactive requests.
func countReactive(reqs []*request) (n int) {
	for _, r := range reqs {
		if r.class == Reactive {
			n++
		}
	}
	return n
}
