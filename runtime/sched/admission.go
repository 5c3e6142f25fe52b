package sched

import (
	"slices"
	"time"
)

// admit makes waiting requests resident: reactive ones first, each class in order of
// precedence. Who finds no blocks is not passed by: that would let small requests starve a
// large one. An aged request takes its turn for blocks among the reactive ones, by arrival
// among the first of them, since memory, unlike time, is not given back at the next op.
func (s *Scheduler) admit(now time.Duration) {
	for {
		first, second := s.head(Reactive), s.head(Proactive)
		if second != nil && second.promoted && (first == nil || second.before(first)) {
			first, second = second, first
		}
		if first == nil || s.full(first) {
			first, second = second, nil // a row is no block: whoever has one goes on
		}
		if first == nil || s.full(first) {
			return
		}
		if !s.makeResident(now, first) {
			return
		}
	}
}

// head is the first request of a class that waits and may come in.
func (s *Scheduler) head(c Class) *request {
	if len(s.queue[c]) == 0 || c == Proactive && s.expelling() && !s.queue[c][0].promoted {
		return nil
	}
	return s.queue[c][0]
}

// full says whether there is no row for r: a class has MaxRunning, and a proactive
// request takes one of them only where all that run leave it, unless it has aged. One that is due
// stays beside them: its first quantum does not wait for the last token of another.
func (s *Scheduler) full(r *request) bool {
	n, most, due := 0, s.cfg.MaxRunning, s.due(r)
	if due {
		most *= 2
	}
	for _, o := range s.running {
		if o.class == r.class || r.class == Proactive && !r.promoted && !due {
			n++
		}
	}
	return n >= most
}

// expelling says whether proactive sequences lose their blocks for reactive ones that live.
func (s *Scheduler) expelling() bool { return s.rules.expels && s.lives[Reactive] > 0 }

// expel takes the blocks from every proactive sequence where the policy wants that, for
// good: they are computed again, as if nothing of them were cached.
func (s *Scheduler) expel() {
	if !s.expelling() {
		return
	}
	for i := len(s.running) - 1; i >= 0; i-- {
		if r := s.running[i]; r.class == Proactive && !r.inFlight {
			r.reuse = false
			s.preempt(r)
		}
	}
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
		s.taken(r)
	}
	r.slot = s.takeSlot()
	at, _ := slices.BinarySearchFunc(s.running, r, precedence)
	s.running = slices.Insert(s.running, at, r)
	return true
}

// fit finds r blocks. Who has blocks and finds no row in a batch pauses with them:
// nothing is computed twice for want of a row.
func (s *Scheduler) fit(r *request) bool {
	peers := s.peers(r)
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
		if o.urgency() <= r.urgency() && !s.cfg.Texts { // texts do not grow
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

// enqueue puts r into the queue of its class at its place.
func (s *Scheduler) enqueue(r *request) {
	q := s.queue[r.class]
	at, _ := slices.BinarySearchFunc(q, r, precedence)
	s.queue[r.class] = slices.Insert(q, at, r)
	if !r.resumed {
		s.fresh[r.stated]++
	}
}

func (s *Scheduler) unqueue(r *request) {
	q := s.queue[r.class]
	i, _ := slices.BinarySearchFunc(q, r, precedence)
	s.queue[r.class] = slices.Delete(q, i, i+1)
	if !r.resumed {
		s.fresh[r.stated]--
	}
}

// rejectOverflow refuses the latest arrivals that found no place, each class by its own bound, so
// that a flood of background work does not lock interactive users out.
func (s *Scheduler) rejectOverflow() {
	for i := len(s.arrived) - 1; i >= 0; i-- {
		r := s.arrived[i]
		if s.byID[r.id] != r || r.seq != nil || r.resumed || r.placed || s.queued(r.stated) <= s.cfg.Queue {
			continue
		}
		s.leave(r)
		s.rejectFull(r)
	}
	for _, r := range s.arrived {
		if s.byID[r.id] == r && r.unready {
			r.placed = true
			s.actions = append(s.actions, Action{Kind: Placed, ID: r.id})
		}
	}
}

// queued returns how many requests of a class take a place of its queue: those that wait and never
// ran, and those that are not ready, but for as many as there are rows free for them.
func (s *Scheduler) queued(c Class) int {
	n := s.fresh[c]
	if s.unready[c] == 0 {
		return n
	}
	rows := s.cfg.MaxRunning
	for _, r := range s.running {
		if r.stated == c || c == Proactive {
			rows--
		}
	}
	return n + max(0, s.unready[c]-max(0, rows))
}

// ready puts a request that was pending into its queue, at the place of its arrival.
func (s *Scheduler) ready(r *request) {
	r.unready = false
	s.unready[r.stated]--
	s.enqueue(r)
	s.lives[r.class]++
	s.arrived = append(s.arrived, r)
}

func (s *Scheduler) reject(id ID, why Reason) {
	s.stats.Rejections++
	s.actions = append(s.actions, Action{Kind: Reject, ID: id, Reason: why})
}
