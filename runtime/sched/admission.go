package sched

import (
	"slices"
	"time"

	"sandwich/runtime/kvcache"
)

// admit makes waiting requests resident: reactive ones first, each class in order of precedence. If
// the first request does not fit, later ones wait too, because small requests would starve a large
// one. An aged request competes for blocks with the reactive ones, in order of arrival among the
// first of them: time is returned at the next op, memory is not.
func (s *Scheduler) admit(now time.Duration) {
	for {
		first, second := s.head(Reactive), s.head(Proactive)
		if second != nil && second.promoted && (first == nil || second.before(first)) {
			first, second = second, first
		}
		if first == nil || s.full(first) {
			first, second = second, nil // a request that lacks a row holds no blocks back
		}
		if first == nil || s.full(first) {
			return
		}
		if !s.makeResident(now, first) {
			return
		}
	}
}

// head returns the first waiting request of a class that may be admitted.
func (s *Scheduler) head(c Class) *request {
	if len(s.queue[c]) == 0 || c == Proactive && s.expelling() && !s.queue[c][0].promoted {
		return nil
	}
	return s.queue[c][0]
}

// full reports whether there is no row for r. A class has MaxRunning rows. A proactive request
// needs one that all running requests leave free, unless it has aged. A request that is due is
// admitted beyond MaxRunning: its first quantum does not wait for the last token of another.
func (s *Scheduler) full(r *request) bool {
	n, limit, due := 0, s.cfg.MaxRunning, s.policy.due(s, r)
	if due {
		limit *= 2
	}
	for _, o := range s.running {
		if o.class == r.class || r.class == Proactive && !r.promoted && !due {
			n++
		}
	}
	return n >= limit
}

// expelling reports whether proactive sequences lose their blocks because reactive requests live.
func (s *Scheduler) expelling() bool { return s.rules.expels && s.lives[Reactive] > 0 }

// expel takes the blocks from every proactive sequence if the policy requires it. They are computed
// again without the prefix cache.
func (s *Scheduler) expel() {
	if !s.expelling() {
		return
	}
	for i := len(s.running) - 1; i >= 0; i-- {
		if r := s.running[i]; r.class == Proactive && !r.writes() {
			r.reuse = false
			s.preempt(r)
		}
	}
}

// makeResident gives r a slot and blocks for every token known so far, so that a prefill never
// stops halfway for want of blocks. If blocks are short, less urgent sequences lose theirs.
func (s *Scheduler) makeResident(now time.Duration, r *request) bool {
	if s.blocked == r && s.blockedN == s.releases {
		return false // nothing was released since it did not fit
	}
	if !s.fit(r) {
		s.blocked, s.blockedN = r, s.releases
		return false
	}
	s.blocked = nil
	s.unqueue(r)
	if !r.resumed {
		r.admitted = now
		s.departed(r)
	}
	r.slot = s.takeSlot()
	at, _ := slices.BinarySearchFunc(s.running, r, precedence)
	s.running = slices.Insert(s.running, at, r)
	return true
}

// fit reserves blocks for r. A sequence that has blocks and no row in a batch pauses and keeps
// them, so that nothing is computed twice for want of a row.
func (s *Scheduler) fit(r *request) bool {
	peers := s.peers(r)
	seq, reused := s.cache.Open(r.salt), 0
	if r.reuse {
		reused = s.cache.Adopt(seq, r.tokens[:r.known])
	}
	for {
		// One spare block for each peer, so that r is not preempted as soon as its peers grow.
		if s.cache.Reserve(seq, r.known) && s.cache.Spare(peers) {
			r.seq = seq
			for _, end := range r.ends {
				s.cache.Checkpoint(seq, end)
			}
			s.stats.ReusedTokens += int64(reused)
			s.beginLoad(r)
			return true
		}
		if !s.preemptBelow(r) {
			s.cache.Free(seq)
			return false
		}
	}
}

// peers returns the number of resident sequences that are at least as urgent as r. Texts do not
// grow and count as none.
func (s *Scheduler) peers(r *request) (n int) {
	for _, o := range s.running {
		if o.urgency() <= r.urgency() && !s.cfg.Texts {
			n++
		}
	}
	return n
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

// rejectOverflow refuses the latest arrivals beyond Config.Queue of their class, so that many
// requests of one class do not lock the other out. It confirms the places of pending requests.
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

// queued returns how many requests of a class take a place in its queue: those that wait and never
// ran, and those that are not ready, except for as many as there are free rows.
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

// A request whose prompt is stored outside the cache is loading from its admission to the event
// Loaded or LoadFailed: it holds its blocks and its row, and no forward has it. The executor fills
// the blocks meanwhile.

// beginLoad starts the load of a request that was admitted, if more of its prompt can be loaded
// than the cache has.
func (s *Scheduler) beginLoad(r *request) {
	at := r.seq.Len()
	n := min(r.stored, (r.known-1)/kvcache.BlockTokens*kvcache.BlockTokens)
	if !r.reuse || n <= at || n%kvcache.BlockTokens != 0 {
		return
	}
	r.loading = true
	s.loads = append(s.loads, r)
	s.actions = append(s.actions, Action{Kind: Load, ID: r.id, Pos: at, N: n, Pieces: s.cache.BeginLoad(r.seq, n)})
}
