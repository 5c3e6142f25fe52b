package sched

import (
	"cmp"
	"slices"
)

func init() { policies[DefaultPolicy] = sandwich{} }

// sandwich is the policy of Agent.xpu sections 4.4 and 4.5. Prefill chunks and decode
// batches alternate, so that neither a long prompt nor a full decode batch starves
// the other; reactive prefill waits only for reactive decoding; proactive prefill
// fills the slack and halts for a reactive arrival.
type sandwich struct{}

func (sandwich) next(s *Scheduler, w work) *request {
	between := s.cfg.DecodesBetweenChunks
	if r := w.prefill[Reactive]; r != nil {
		if w.decode[Reactive] > 0 && s.sinceChunk < between {
			return nil
		}
		return r
	}
	if w.decode[Reactive] > 0 {
		between = s.cfg.DecodesBetweenProactiveChunks
	}
	if w.decode[Reactive]+w.decode[Proactive] > 0 && s.sinceChunk < between {
		return nil
	}
	return w.prefill[Proactive]
}

// batch takes everybody where all are of one class. Where reactive and proactive
// sequences meet, the batch is cut to MixedCap by evicting proactive ones, the
// longest first, then the newest; aged ones stay (adaptive decode batching).
func (sandwich) batch(s *Scheduler, ready []*request) (rows []*request, most int) {
	mixed := slices.ContainsFunc(ready, func(r *request) bool { return r.class == Reactive })
	slices.SortFunc(ready, func(a, b *request) int {
		if c := cmp.Compare(a.urgency(), b.urgency()); c != 0 || a.urgency() == Reactive || !mixed {
			return cmp.Or(c, cmp.Compare(a.order, b.order))
		}
		return cmp.Or(cmp.Compare(a.known, b.known), cmp.Compare(a.order, b.order))
	})
	if !mixed {
		return ready, s.cfg.MaxRunning
	}
	n := len(ready)
	for n > s.cfg.MixedCap && ready[n-1].urgency() == Proactive {
		n--
	}
	if ready[n-1].urgency() == Reactive {
		return ready[:n], s.cfg.MaxRunning
	}
	return ready[:n], s.cfg.MixedCap
}

// victim is the newest sequence of the lowest class present.
func (sandwich) victim(s *Scheduler) *request {
	var v *request
	for _, r := range s.running {
		if !r.inFlight && (v == nil || v.before(r)) {
			v = r
		}
	}
	return v
}

func (sandwich) halts(_ *Scheduler, r *request) bool { return r.urgency() == Reactive }
