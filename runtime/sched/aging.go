package sched

import "time"

// promote marks proactive requests that made no progress for Config.Aging as aged (Agent.xpu
// section 4.5, starvation prevention). They have guaranteed quanta, a row in the decode batch and
// precedence for blocks; a reactive arrival still halts them. Progress is arrival and each new
// token, not each forward: a prefill that is discarded repeatedly makes no progress.
//
// If requests have priorities, a reactive request ages too and then ranks with the first of its
// class, so that no request waits forever for others of a better priority.
func (s *Scheduler) promote(now time.Duration) {
	if s.cfg.Aging < 0 {
		return
	}
	aged := false
	for _, list := range s.lists() {
		for _, r := range list {
			if !r.promoted && !r.dead && now-r.progress >= s.cfg.Aging && (r.class == Proactive || s.rules.priorities) {
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
	s.policy.aged(s, r)
	s.stats.Promotions++
	if s.rules.promotes {
		s.lives[r.class]--
		r.class = Reactive
		s.lives[r.class]++
	}
}

// lower updates the lowest priority value of reactive requests by the arrival of r. Aged requests
// rank with the first one.
func (s *Scheduler) lower(r *request) {
	if r.class != Reactive || r.priority >= s.first {
		return
	}
	s.first = r.priority
	aged := false
	for _, list := range s.lists() {
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
