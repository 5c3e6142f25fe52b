package sched

import "time"

// Quanta: beside reactive work proactive prefill runs on credit. Each reactive step earns
// Config.Quantum of its predicted time, and never more of it than of the time that it
// really took; what a quantum really took is paid, so that one that overran, because an
// op was predicted wrongly, is followed by fewer. The share holds whatever is predicted.

// worstDebt bounds how long an overrun is paid for: a clock that jumps, or a machine that
// stood still, must not end proactive work for hours.
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
		if s.passed = -1; r.class == Reactive {
			s.passed = f.began
		}
	}
	step := min(f.step, took)
	if f.prefill {
		step = min(step, s.cfg.Bound) // a chunk may be many steps
	}
	switch {
	case f.quantum:
		s.credit = max(s.credit-took, -worstDebt)
	case f.prefill && !s.agedWaits():
	case f.step > 0:
		earned := time.Duration(s.cfg.Quantum * float64(step))
		s.credit = min(s.credit+earned, max(earned, s.cfg.Bound))
	}
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
// its next op. An op that is predicted beyond all credit there may be runs when that is full:
// the prediction may be wrong, and the debt bounds what it costs.
func (s *Scheduler) quantum(r *request) (*request, time.Duration) {
	if r == nil || s.credit <= 0 || r == s.suspended && s.credit < min(r.ahead, s.cfg.Bound) {
		return nil, 0
	}
	return r, s.credit
}
