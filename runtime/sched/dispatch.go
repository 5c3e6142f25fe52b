package sched

// work is what could run now, by urgency.
type work struct {
	prefill [2]*request // the next prefill
	decode  [2]int      // sequences ready to decode
}

func (s *Scheduler) work() (w work) {
	for _, r := range s.running {
		u := r.urgency()
		switch n := r.pending(); {
		case n == 1:
			w.decode[u]++
		case n > 1 && w.prefill[u] == nil:
			w.prefill[u] = r
		}
	}
	// One prefill can be kept halted: it must end before the next one that may halt
	// starts, aged or not.
	if r := s.suspended; r != nil {
		w.prefill[Proactive] = nil
		if r.urgency() == Proactive {
			w.prefill[Proactive] = r
		}
	}
	return w
}

func (w work) none() bool { return w == work{} }

// dispatch starts the next forward, if there is anything to compute.
func (s *Scheduler) dispatch() {
	w := s.work()
	if w.none() {
		return
	}
	if r := s.policy.next(s, w); r != nil {
		s.startPrefill(r)
	} else {
		s.startDecode()
	}
}

func (s *Scheduler) startPrefill(r *request) {
	f := &s.flight
	kind, set := Prefill, s.free(r.urgency())
	if r == s.suspended {
		// The halted chunk goes on as it was cut; tokens do not arrive meanwhile.
		kind, set, s.suspended = Resume, r.set, nil
	}
	n := min(r.pending(), s.cfg.Chunk)
	*f = flight{active: true, prefill: true, rows: n, reqs: append(f.reqs[:0], r), interruptible: r.urgency() == Proactive}
	r.inFlight, r.set = true, set
	s.sinceChunk = 0
	s.actions = append(s.actions, Action{
		Kind: kind, Lane: f.lane, Set: set, ID: r.id, Pos: r.seq.Len(), N: n, Last: n == r.pending(),
	})
}

// free is the set of activations for a forward of an urgency: each has its own,
// but for the one in which a halted prefill waits.
func (s *Scheduler) free(u Class) uint8 {
	set := uint8(u)
	if s.suspended != nil && s.suspended.set == set {
		return 1 - set
	}
	return set
}

// startDecode runs the decode batch. Every row gets its block first, the most
// urgent ones at the cost of the least urgent.
func (s *Scheduler) startDecode() {
	s.choose()
	for _, r := range s.batch {
		for r.seq != nil && !s.cache.Reserve(r.seq, r.seq.Len()+1) {
			s.preempt(s.policy.victim(s))
		}
	}
	f := &s.flight
	*f = flight{active: true, rows: 1, reqs: f.reqs[:0]}
	s.ids = s.ids[:0]
	for _, r := range s.batch {
		if r.seq != nil {
			r.inFlight = true
			f.reqs = append(f.reqs, r)
			s.ids = append(s.ids, r.id)
		}
	}
	if len(s.ids) == 0 {
		// Everybody ready gave way to sequences in prefill: those run now. This
		// ends, because each time round at least one sequence was preempted.
		f.active = false
		s.dispatch()
		return
	}
	s.sinceChunk++
	s.actions = append(s.actions, Action{Kind: Decode, Lane: f.lane, Set: s.free(f.reqs[0].urgency()), IDs: s.ids})
}

// choose fills s.batch, in order of precedence. Who is left out pauses: it keeps its
// blocks and joins a later batch.
func (s *Scheduler) choose() {
	s.batch = s.batch[:0]
	for _, r := range s.running {
		if r.pending() == 1 {
			s.batch = append(s.batch, r)
		}
	}
	ready := len(s.batch)
	s.batch = s.policy.batch(s, s.batch)
	s.batch = s.batch[:min(len(s.batch), s.cfg.MaxRunning)]
	s.stats.Evictions += int64(ready - len(s.batch))
}
