package sched

import (
	"cmp"
	"time"
)

// work is what could run now, by class.
type work struct {
	prefill [2]*request // the next prefill
	decode  [2]int      // sequences ready to decode
	aged    int         // of the proactive ones among them, or all where progress is guaranteed
}

func (s *Scheduler) work() (w work) {
	guaranteed := s.guaranteed()
	for _, r := range s.running {
		switch n := r.pending(); {
		case r.inFlight, r.held && r != s.suspended: // which goes on with the first of them
		case n < 1:
		case n == 1 && !s.cfg.Texts:
			w.decode[r.class]++
			if r.class == Proactive && (r.promoted || guaranteed) {
				w.aged++
			}
		case w.prefill[r.class] == nil || s.due(r) && !s.due(w.prefill[r.class]):
			w.prefill[r.class] = r
		}
	}
	// One prefill can be kept halted: it must end before the next one that may halt
	// starts, aged or not.
	if r := s.suspended; r != nil {
		w.prefill[Proactive] = nil
		if r.class == Proactive {
			w.prefill[Proactive] = r
		}
	}
	return w
}

func (w work) none() bool { return w == work{} }

// dispatch starts the next forward of each lane that is free, if there is anything to compute.
func (s *Scheduler) dispatch() {
	if s.cfg.Lanes > 1 {
		s.dispatchLanes()
		return
	}
	if s.flights[prefillLane].active {
		return
	}
	w := s.work()
	if w.none() {
		return
	}
	if r, quantum := s.policy.next(s, w); r != nil {
		s.startPrefill(r, quantum)
	} else {
		s.startDecode(quantum)
	}
}

// dispatchLanes starts a prefill on the one lane and a decode batch on the other: neither phase
// waits for the other. Whose prefill it is the policy says, as if nobody decoded.
func (s *Scheduler) dispatchLanes() {
	w := s.work()
	if prefills := (work{prefill: w.prefill}); !s.flights[prefillLane].active && !prefills.none() {
		r, quantum := s.policy.next(s, prefills)
		if r == nil {
			r, quantum = cmp.Or(w.prefill[Reactive], w.prefill[Proactive]), 0
		}
		s.startPrefill(r, quantum)
	}
	if w.decode != [2]int{} && !s.flights[decodeLane].active {
		s.startDecode(0)
	}
}

func (s *Scheduler) startPrefill(r *request, quantum time.Duration) {
	f := &s.flights[prefillLane]
	kind, set := Prefill, s.free(r.class)
	*f = flight{active: true, prefill: true, reqs: append(f.reqs[:0], r), interruptible: r.class == Proactive,
		began: s.now, quantum: quantum > 0}
	if r == s.suspended {
		// The halted chunk goes on as it was cut; tokens do not arrive meanwhile.
		kind, set, f.reqs = Resume, r.set, append(f.reqs[:0], s.held...)
		s.forget()
	} else {
		s.pack(r)
	}
	s.rows = s.rows[:0]
	for _, o := range f.reqs {
		s.begin(o)
		o.inFlight, o.set = true, set
		if kind == Prefill {
			o.chunk = s.now
		}
		s.rows = append(s.rows, Rows{o.id, o.rows})
	}
	n := r.rows
	a := Action{Kind: kind, Lane: f.lane, Set: set, ID: r.id, Pos: r.seq.Len(), N: n, Last: n == r.pending(),
		Quantum: quantum}
	if s.cfg.Texts {
		a.Rows = s.rows
	}
	if f.interruptible {
		a.Bound = s.cfg.Bound
	} else {
		f.step = s.predicted(1, a.Pos+n) // aged prefill waits for quanta of it
	}
	if f.quantum {
		s.stats.Quanta++
	} else {
		s.sinceChunk = 0
	}
	s.actions = append(s.actions, a)
}

// pack gives the prefill of r its rows: a chunk, and of texts, in order of precedence, the others
// of its class that fit into it whole.
func (s *Scheduler) pack(r *request) {
	f := &s.flights[prefillLane]
	if r.rows = r.pending(); !s.cfg.Whole {
		r.rows = min(r.rows, s.cfg.Chunk)
	}
	if r.logits {
		r.rows = min(r.rows, s.cfg.LogitRows)
	}
	r.rows = min(r.rows, s.passable(r))
	left := s.cfg.Chunk - r.rows
	for _, o := range s.running {
		if !s.cfg.Texts || left <= 0 {
			return
		}
		if n := o.pending(); o != r && !o.held && o.class == r.class && n > 0 && n <= left {
			o.rows = n
			left -= n
			f.reqs = append(f.reqs, o)
		}
	}
}

// suspend keeps a halted forward, which can be resumed while all of its requests are there.
func (s *Scheduler) suspend(reqs []*request, ahead time.Duration) {
	s.suspended, reqs[0].ahead = reqs[0], ahead
	s.held = append(s.held[:0], reqs...)
	for _, r := range reqs {
		r.held = true
	}
}

// forget ends the keeping of a halted forward: it goes on, or its requests begin again.
func (s *Scheduler) forget() {
	for _, r := range s.held {
		r.held = false
	}
	s.suspended, s.held = nil, s.held[:0]
}

// free is the set of activations for a forward of a class: each has its own,
// but for the one in which a halted prefill waits.
func (s *Scheduler) free(c Class) uint8 {
	set := uint8(c)
	if s.suspended != nil && s.suspended.set == set {
		return 1 - set
	}
	return set
}

// startDecode runs the decode batch. Every row gets its block first, the most
// urgent ones at the cost of the least urgent. A quantum is what pays for it.
func (s *Scheduler) startDecode(quantum time.Duration) {
	most := s.choose()
	for _, r := range s.batch {
		for r.seq != nil && !s.cache.Reserve(r.seq, r.seq.Len()+1) {
			s.preempt(s.policy.victim(s))
		}
	}
	lane := Lane(s.cfg.Lanes - 1)
	f := &s.flights[lane]
	*f = flight{active: true, lane: lane, reqs: f.reqs[:0], began: s.now, quantum: quantum > 0}
	for _, r := range s.batch {
		if r.seq != nil {
			r.inFlight, r.rows = true, 1
			f.reqs = append(f.reqs, r)
		}
	}
	if len(f.reqs) == 0 {
		// Everybody ready gave way to sequences in prefill: those run now. This
		// ends, because each time round at least one sequence was preempted.
		f.active = false
		s.dispatch()
		return
	}
	s.sinceChunk++
	s.widen(f, most-len(f.reqs))
	f.step = s.reactiveStep(f.reqs)
	s.actions = append(s.actions, Action{Kind: Decode, Lane: f.lane, Set: s.free(f.reqs[0].class), Rows: s.rows})
}

// widen gives the rows that a decode batch leaves free to drafts, as far as there are
// blocks: nobody pauses or is preempted for a guess. A state that has taken a wrong guess in is
// lost, so models that have one get none.
func (s *Scheduler) widen(f *flight, free int) {
	s.rows = s.rows[:0]
	for _, r := range f.reqs {
		n := max(0, min(r.draft, free))
		if n > 0 && s.cache.Rewinds() && s.cache.Reserve(r.seq, r.seq.Len()+1+n) {
			r.rows += n
			free -= n
		}
		s.rows = append(s.rows, Rows{r.id, r.rows})
	}
}

// choose fills s.batch, in order of precedence, and returns how many rows it may have.
// Who is left out pauses: it keeps its blocks and joins a later batch.
func (s *Scheduler) choose() (rows int) {
	s.batch = s.batch[:0]
	for _, r := range s.running {
		if r.pending() == 1 {
			s.batch = append(s.batch, r)
		}
	}
	ready := len(s.batch)
	s.batch, rows = s.policy.batch(s, s.batch)
	rows = min(rows, s.cfg.MaxRunning+1)
	s.batch = s.batch[:min(len(s.batch), s.cfg.MaxRunning+1)]
	s.stats.Evictions += int64(ready - len(s.batch))
	return rows
}
