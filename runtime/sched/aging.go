package sched

import (
	"slices"
	"time"
)

// promote marks proactive requests as aged that made no progress for too long
// (Agent.xpu section 4.5, starvation prevention). They gain quanta that are certain, a
// place in the decode batch, and a turn for blocks; a reactive arrival still halts them.
// The clock starts at arrival and again at each new token, not at each forward: a prefill
// that is thrown away again and again is no progress. Where a first quantum is owed that
// counts, too.
//
// Where requests have priorities a reactive one ages, too: it goes with the first of its
// class from then on. So nobody waits for ever behind those who say that they are first.
func (s *Scheduler) promote(now time.Duration) {
	if s.cfg.Aging < 0 {
		return
	}
	aged := false
	for _, list := range [...][]*request{s.running, s.queue[Reactive], s.queue[Proactive]} {
		for _, r := range list {
			if !r.promoted && !r.dead && now-r.progress >= s.cfg.Aging && (r.class == Proactive || s.rules.ranks) {
				s.age(r)
				aged = true
			}
		}
	}
	if aged {
		s.reorder()
	}
}

func (s *Scheduler) age(r *request) {
	r.promoted, r.rank = true, s.first
	if r.class == Reactive {
		return
	}
	if s.blocked == r {
		s.blocked = nil // it may preempt now
	}
	s.credit = max(s.credit, 0) // what others overran is not its debt
	s.stats.Promotions++
	if s.rules.lifts {
		s.lives[r.class]--
		r.class = Reactive
		s.lives[r.class]++
	}
}

// lead notes the arrival of r where no reactive request had so low a priority before: who has aged
// goes with the first, whoever that is.
func (s *Scheduler) lead(r *request) {
	if r.class != Reactive || r.priority >= s.first {
		return
	}
	s.first = r.priority
	aged := false
	for _, list := range [...][]*request{s.running, s.queue[Reactive], s.queue[Proactive]} {
		for _, o := range list {
			if o.promoted {
				o.rank, aged = s.first, true
			}
		}
	}
	if aged {
		s.reorder()
	}
}

// reorder puts everybody into the queue of its class and the order of precedence, after these
// changed.
func (s *Scheduler) reorder() {
	n, q := 0, s.queue[Proactive]
	for _, r := range q {
		if r.class == Proactive {
			q[n] = r
			n++
		} else {
			s.queue[Reactive] = append(s.queue[Reactive], r)
		}
	}
	clear(q[n:])
	s.queue[Proactive] = q[:n]
	for _, list := range [...][]*request{s.running, s.queue[Reactive], s.queue[Proactive]} {
		slices.SortFunc(list, precedence)
	}
}
