package sched

import (
	"cmp"
	"slices"
	"time"
)

// admit makes waiting requests resident, in order of precedence and without
// skipping one that does not fit: skipping would let small requests starve a
// large one.
func (s *Scheduler) admit(now time.Duration) {
	for {
		r := s.head()
		if r == nil || !s.makeResident(now, r) {
			return
		}
	}
}

func (s *Scheduler) head() *request {
	for _, q := range s.queue {
		if len(q) > 0 {
			return q[0]
		}
	}
	return nil
}

// makeResident gives r a slot and the blocks for every token known so far, so
// that a prefill never stops for want of blocks half-way. Where blocks are short,
// less urgent sequences lose theirs for it.
func (s *Scheduler) makeResident(now time.Duration, r *request) bool {
	if s.blocked == r && s.blockedN == s.releases {
		return false // nothing was given back since it did not fit
	}
	if !s.fit(r) {
		s.blocked, s.blockedN = r, s.releases
		return false
	}
	s.blocked = nil
	s.unqueue(r)
	if !r.resumed {
		r.admitted = now
	}
	r.slot = s.takeSlot()
	at, _ := slices.BinarySearchFunc(s.running, r.order, func(o *request, order uint64) int {
		return cmp.Compare(o.order, order)
	})
	s.running = slices.Insert(s.running, at, r)
	return true
}

// fit finds r blocks, and a place among those at least as urgent, who go into a
// batch before it. The less urgent pause with their blocks while a batch is full:
// nothing is computed twice for want of a row.
func (s *Scheduler) fit(r *request) bool {
	peers := s.peers(r)
	if peers >= s.cfg.MaxRunning {
		return false
	}
	seq, reused := s.cache.Open(r.salt), 0
	if r.reuse {
		reused = s.cache.Adopt(seq, r.tokens[:r.known])
	}
	for {
		// One spare block for each peer, so that the newcomer is not the next to be
		// preempted as soon as its neighbours grow; the less urgent go before it.
		if s.cache.Reserve(seq, r.known) && s.cache.Spare(peers) {
			r.seq = seq
			for _, end := range r.ends {
				s.cache.Checkpoint(seq, end)
			}
			s.stats.ReusedTokens += int64(reused)
			return true
		}
		if !s.preemptBelow(r) {
			s.cache.Free(seq)
			return false
		}
	}
}

// peers is the number of resident sequences that are at least as urgent as r.
func (s *Scheduler) peers(r *request) (n int) {
	for _, o := range s.running {
		if o.urgency() <= r.urgency() {
			n++
		}
	}
	return n
}

func (s *Scheduler) takeSlot() int {
	n := len(s.slots)
	if n == 0 {
		return len(s.running) // slots 0 .. len(running)-1 are in use
	}
	slot := s.slots[n-1]
	s.slots = s.slots[:n-1]
	return slot
}

// preemptBelow preempts a sequence that is less urgent than r.
func (s *Scheduler) preemptBelow(r *request) bool {
	v := s.policy.victim(s)
	if v == nil || v.urgency() <= r.urgency() {
		return false
	}
	s.preempt(v)
	return true
}

// preempt takes a sequence's blocks and puts it back at its place of the queue.
// Its full blocks stay findable, so that computing it again is cheap unless the
// blocks were really needed.
func (s *Scheduler) preempt(r *request) {
	s.release(r)
	r.resumed = true
	s.enqueue(r)
	s.stats.Preemptions++
	s.actions = append(s.actions, Action{Kind: Preempt, ID: r.id})
}

// enqueue puts r into the queue of its urgency at its place by arrival.
func (s *Scheduler) enqueue(r *request) {
	q := s.queue[r.urgency()]
	at := len(q)
	for at > 0 && q[at-1].order > r.order {
		at--
	}
	s.queue[r.urgency()] = slices.Insert(q, at, r)
	if !r.resumed {
		s.fresh[r.class]++
	}
}

func (s *Scheduler) unqueue(r *request) {
	q := s.queue[r.urgency()]
	i := slices.Index(q, r)
	s.queue[r.urgency()] = slices.Delete(q, i, i+1)
	if !r.resumed {
		s.fresh[r.class]--
	}
}

// promote makes proactive requests urgent that made no progress for too long
// (Agent.xpu section 4.5, starvation prevention). The clock starts at arrival
// and again at each new token, not at each forward: a prefill that is thrown
// away again and again is no progress.
func (s *Scheduler) promote(now time.Duration) {
	if s.cfg.Aging < 0 {
		return
	}
	for _, r := range s.running {
		if r.urgency() == Proactive && now-r.progress >= s.cfg.Aging {
			r.promoted = true
			s.stats.Promotions++
		}
	}
	for i := 0; i < len(s.queue[Proactive]); {
		r := s.queue[Proactive][i]
		if now-r.progress < s.cfg.Aging {
			i++
			continue
		}
		s.unqueue(r)
		r.promoted = true
		if s.blocked == r {
			s.blocked = nil // it may preempt now
		}
		s.enqueue(r)
		s.stats.Promotions++
	}
}

// rejectOverflow refuses the latest arrivals that found no place, each class by
// its own bound, so that a flood of background work never locks people out.
func (s *Scheduler) rejectOverflow() {
	for i := len(s.arrived) - 1; i >= 0; i-- {
		r := s.arrived[i]
		if s.byID[r.id] != r || r.seq != nil || r.resumed || s.fresh[r.class] <= s.cfg.Queue {
			continue
		}
		id := r.id
		s.leave(r)
		s.reject(id, QueueFull)
	}
}

func (s *Scheduler) reject(id ID, why Reason) {
	s.stats.Rejections++
	a := Action{Kind: Reject, ID: id, Reason: why}
	if why == QueueFull {
		// A place is free when the next resident request has finished.
		a.RetryAfter = max(s.service/time.Duration(s.cfg.MaxRunning), time.Second).Round(time.Second)
	}
	s.actions = append(s.actions, a)
}
