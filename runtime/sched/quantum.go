package sched

import "time"

// Quanta: beside reactive work proactive prefill runs on credit. Each reactive step earns
// Config.Quantum of its predicted time, and never more of it than of the time that it
// really took; what a quantum really took is paid, so that one that overran, because an
// op was predicted wrongly, is followed by fewer. The share holds whatever is predicted. Where
// progress is guaranteed (guarantee.go) reactive prompts earn, too.

// worstDebt bounds how long an overrun is paid for, and what a forward earns: a clock that jumps,
// or a machine that stood still, must neither end proactive work for hours nor let it run so long.
const worstDebt = time.Second

// unpredicted stands for a step of which nothing is known yet.
const unpredicted = time.Duration(1<<63 - 1)

// predicted is the time of a decode step.
func (s *Scheduler) predicted(rows, positions int) time.Duration {
	if s.cfg.Forecast != nil {
		if d := s.cfg.Forecast(rows, positions); d > 0 {
			return d
		}
	}
	return unpredicted
}

// reactiveStep is the predicted time of a batch's reactive rows alone, 0 where it has none.
func (s *Scheduler) reactiveStep(batch []*request) time.Duration {
	rows, positions := 0, 0
	for _, r := range batch {
		if r.class == Reactive {
			rows, positions = rows+1, positions+r.known
		}
	}
	if rows == 0 {
		return 0
	}
	return s.predicted(rows, positions)
}

// settle books the time of a forward that landed.
func (s *Scheduler) settle(f *flight) {
	took := s.now - f.began
	for _, r := range f.reqs[:min(1, len(f.reqs))] {
		s.used[r.class] += took
		if r.class == Reactive && f.lane == prefillLane {
			s.passed = f.began
		}
	}
	switch {
	case f.quantum:
		s.credit = max(s.credit-took, -worstDebt)
		over := max(0, s.credit-s.kept())
		s.credit, s.saved = s.credit-over, s.saved+over
	case f.step == 0 || f.lane != prefillLane: // beside which prefills have a lane of their own
	case f.prefill:
		s.earnBetween(f, took)
	default:
		step := min(f.step, took)
		if s.guaranteed() { // whatever was predicted
			step = max(step, took*time.Duration(reactiveOf(f.reqs))/time.Duration(len(f.reqs)))
		}
		s.step = s.share(min(step, worstDebt))
		s.credit = min(s.credit+s.step, s.kept())
	}
}

// earnBetween is what a chunk of a reactive prompt earns: nothing where no aged prompt waits, what
// a step does where one does, since a chunk may be many of them, and where progress is guaranteed
// its whole share. That is spent between prompts only: beside decoding it would be many steps.
func (s *Scheduler) earnBetween(f *flight, took time.Duration) {
	switch {
	case s.guaranteed():
		earned := s.share(min(took, worstDebt))
		paid := min(earned, max(0, -s.credit)) // a debt first
		s.credit, s.saved = s.credit+paid, min(s.saved+earned-paid, worstDebt)
	case s.agedWaits():
		s.credit = min(s.credit+s.share(min(f.step, took, s.cfg.Bound)), s.kept())
	}
}

// share is what proactive work gets for so much time of reactive work.
func (s *Scheduler) share(d time.Duration) time.Duration {
	return time.Duration(s.cfg.Quantum * float64(d))
}

// kept is up to what credit is kept for quanta beside decoding.
func (s *Scheduler) kept() time.Duration { return max(s.step, s.cfg.Bound) }

// reactiveOf is how many of them are reactive.
func reactiveOf(reqs []*request) (n int) {
	for _, r := range reqs {
		if r.class == Reactive {
			n++
		}
	}
	return n
}

// agedWaits says whether an aged prompt waits for quanta.
func (s *Scheduler) agedWaits() bool {
	for _, r := range s.running {
		if r.class == Proactive && r.promoted && r.pending() > 1 {
			return true
		}
	}
	return false
}

// quantum gives a proactive prefill what credit there is, nil where that does not reach to
// its next op.
func (s *Scheduler) quantum(r *request) (*request, time.Duration) {
	if r == nil || !s.reaches(r, s.credit) {
		return nil, 0
	}
	return r, s.credit
}

// reaches says whether a proactive prefill can run on so much credit. An op that is predicted
// beyond all credit there may be runs when that is full: the prediction may be wrong, and the debt
// bounds what it costs.
func (s *Scheduler) reaches(r *request, credit time.Duration) bool {
	return credit > 0 && (r != s.suspended || credit >= min(r.ahead, s.cfg.Bound))
}
