package sched

import (
	"cmp"
	"slices"
	"time"
)

func init() { policies[DefaultPolicy] = sandwich{} }

// sandwich is the policy of Agent.xpu sections 4.4 and 4.5. Prefill chunks and decode
// batches alternate, so that neither a long prompt nor a full decode batch starves
// the other; reactive prefill waits only for reactive decoding; proactive prefill
// fills the slack, runs in quanta beside reactive decoding, and halts for a reactive
// arrival. An aged one has its quanta between reactive prefill chunks, too, and guarantee.go says
// which of them are certain.
type sandwich struct{}

func (sandwich) rules() rules { return rules{ranks: true, owes: true} }

func (sandwich) next(s *Scheduler, w work) (*request, time.Duration) {
	p := w.prefill[Proactive]
	alternate := s.sinceChunk < s.cfg.DecodesBetweenChunks
	switch r := w.prefill[Reactive]; {
	case r != nil:
		// Between prompt chunks, not before somebody who has just come: that one a whole reactive
		// forward has passed by.
		if r.progress <= s.passed {
			if o, quantum := s.between(w); quantum > 0 {
				return o, quantum
			}
		}
		if w.decode[Reactive]+w.aged > 0 && alternate {
			return nil, 0
		}
		return r, 0
	case w.decode[Reactive] > 0:
		return s.quantum(p)
	case w.decode[Proactive] > 0 && alternate:
		return nil, 0
	}
	return p, 0
}

// batch takes everybody where no reactive request runs. Otherwise it is bounded, by the
// predicted time of a step against the objective or else to MixedCap rows, by evicting
// proactive sequences: those of the highest priority, of them the longest first, then the newest
// (adaptive decode batching). The oldest aged one has a place beside that, or the oldest where
// progress is guaranteed; then those that decode while reactive prompts are read are all there.
func (p sandwich) batch(s *Scheduler, ready []*request) (rows []*request, most int) {
	if !slices.ContainsFunc(s.running, func(r *request) bool { return r.class == Reactive && r.pending() > 0 }) {
		return inOrder(s, ready)
	}
	guaranteed := s.guaranteed()
	if guaranteed && reactiveOf(ready) == 0 {
		return inOrder(s, ready)
	}
	i := slices.IndexFunc(ready, func(r *request) bool { return r.class == Proactive && (r.promoted || guaranteed) })
	if i < 0 {
		return p.mixed(s, ready, nil)
	}
	return p.mixed(s, ready, ready[i]) // in order of precedence as yet: the oldest
}

func (sandwich) mixed(s *Scheduler, ready []*request, aged *request) (rows []*request, most int) {
	slices.SortFunc(ready, func(a, b *request) int {
		switch {
		case a == aged || b == aged || a.class != b.class:
			return rank(a, aged) - rank(b, aged)
		case a.class == Reactive:
			return precedence(a, b)
		}
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.known, b.known), cmp.Compare(a.order, b.order))
	})
	n, positions := 0, 0
	for n < len(ready) && (ready[n].class == Reactive || ready[n] == aged) {
		positions += ready[n].known
		n++
	}
	for n < min(len(ready), s.cfg.MaxRunning) && (n == 0 || s.bearable(n+1, positions+ready[n].known)) {
		positions += ready[n].known
		n++
	}
	if ready[n-1].class == Reactive {
		return ready[:n], s.cfg.MaxRunning
	}
	return ready[:n], s.cfg.MixedCap
}

// rank is the place of a class, or of the aged request, in a batch.
func rank(r, aged *request) int {
	switch {
	case r == aged:
		return 1
	case r.class == Reactive:
		return 0
	}
	return 2
}

// bearable says whether a batch of both classes may have so many rows, which see so many
// positions together.
func (s *Scheduler) bearable(rows, positions int) bool {
	if s.cfg.TPOT > 0 {
		if d := s.predicted(rows, positions); d != unpredicted {
			return d <= s.cfg.TPOT
		}
	}
	return rows <= s.cfg.MixedCap
}

// victim is the newest sequence of the lowest class present.
func (sandwich) victim(s *Scheduler) *request { return lowest(s) }

func (sandwich) halts(_ *Scheduler, r *request) bool { return r.class == Reactive }

// inOrder is a batch of all who are ready, in order of precedence, up to the rows there are.
func inOrder(s *Scheduler, ready []*request) ([]*request, int) {
	slices.SortFunc(ready, precedence)
	return ready[:min(len(ready), s.cfg.MaxRunning)], s.cfg.MaxRunning
}

// lowest is the newest sequence of the lowest class that is not in flight.
func lowest(s *Scheduler) *request {
	var v *request
	for _, r := range s.running {
		if !r.inFlight && (v == nil || v.before(r)) {
			v = r
		}
	}
	return v
}
