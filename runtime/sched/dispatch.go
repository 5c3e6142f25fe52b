package sched

import (
	"cmp"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
)

// dispatch starts the next forward of each lane that is free, if there is anything to compute. If
// lanes contend, that of prefills comes first, since a quantum may precede a decode batch.
func (s *Scheduler) dispatch() {
	first := s.laneOf[phase.Prefill]
	if !s.cfg.contend() {
		first = 0
	}
	for i := range s.flights {
		if id := (int(first) + i) % len(s.flights); !s.flights[id].active {
			s.dispatchLane(&s.cfg.Lanes[id])
		}
	}
}

// dispatchLane starts the next forward of a lane. The policy chooses it; for the lane of one phase,
// as if there were no work of the other phase, so that neither phase waits for the other.
func (s *Scheduler) dispatchLane(l *Lane) {
	w := s.work()
	if !l.Serves(phase.Prefill) {
		if w.decode != [2]int{} && !s.decodeWaits(w) {
			s.startDecode(0)
		}
		return
	}
	both := w
	if !l.Serves(phase.Decode) {
		w.decode = [2]int{}
	}
	if w.none() {
		return
	}
	r, quantum := s.policy.next(s, w)
	if r == nil && !l.Serves(phase.Decode) {
		r, quantum = cmp.Or(w.prefill[Reactive], w.prefill[Proactive]), 0
	}
	if r != nil {
		if waits, _ := s.contends(r, both); waits {
			if s.flight(phase.Decode).active {
				return
			}
			if r, quantum = s.policy.next(s, both); r == nil {
				return // the decode batch starts
			}
		}
	}
	if r != nil {
		s.startPrefill(r, quantum)
	} else {
		s.startDecode(quantum)
	}
}

// work returns what could run now.
func (s *Scheduler) work() (w work) {
	for _, r := range s.running {
		switch {
		case !s.ready(r) || r.pending() < 1:
		case s.decodes(r):
			w.decode[r.class]++
		case w.prefill[r.class] == nil || s.policy.due(s, r) && !s.policy.due(s, w.prefill[r.class]):
			w.prefill[r.class] = r
		}
	}
	// Only one prefill can stay halted: it must end before the next one that may halt starts.
	if r := s.suspended; r != nil {
		w.prefill[Proactive] = nil
		if r.class == Proactive {
			w.prefill[Proactive] = r
		}
	}
	return w
}

// contends reports whether the prefill of r and the decode batch in flight, or the next one, must
// not run at the same time on two lanes, and which one is less urgent: only reactive requests and
// those that have aged come before others. The less urgent one waits.
func (s *Scheduler) contends(r *request, w work) (prefillWaits, decodeWaits bool) {
	batch, f := s.batch[:0], s.flight(phase.Decode)
	switch {
	case s.sharedLane() || !s.cfg.contend() || !f.active && w.decode == [2]int{}:
		return false, false
	case f.active:
		batch = append(batch, f.reqs...)
	default:
		for _, o := range s.running {
			if s.decodes(o) {
				batch = append(batch, o)
			}
		}
	}
	s.batch = batch
	urgent, positions := false, 0
	for _, o := range batch {
		prefillWaits = prefillWaits || o.class == Reactive && r.urgency() == Proactive
		urgent = urgent || o.urgency() == Reactive
		positions += o.known
	}
	decodeWaits = r.class == Reactive && !urgent
	if prefillWaits && s.cfg.NoPiggyback {
		return true, false
	}
	if !prefillWaits && !decodeWaits || s.cfg.Contends == nil ||
		!s.cfg.Contends(r.seq.Len(), min(r.pending(), s.cfg.Chunk), len(batch), positions) {
		return false, false
	}
	return prefillWaits, decodeWaits
}

// decodeWaits reports whether the decode batch must wait for the prefill in flight on the other
// lane: for a more urgent one, or one that credit pays for. Another prefill that contends halts.
func (s *Scheduler) decodeWaits(w work) bool {
	f := s.flight(phase.Prefill)
	if !f.active || len(f.reqs) == 0 {
		return false
	}
	prefillWaits, decodeWaits := s.contends(f.reqs[0], w)
	if prefillWaits && !f.quantum && f.interruptible && !f.halting {
		s.haltFlight(f)
	}
	return decodeWaits || prefillWaits && f.quantum
}

// prefillWaits reports whether a proactive prefill waits for the decode batch that starts.
func (s *Scheduler) prefillWaits() bool {
	if s.sharedLane() || !s.cfg.contend() || s.flight(phase.Prefill).active {
		return false
	}
	w := s.work()
	r := w.prefill[Proactive]
	if w.prefill[Reactive] != nil || r == nil {
		return false
	}
	waits, _ := s.contends(r, w)
	return waits
}

func (s *Scheduler) startPrefill(r *request, quantum time.Duration) {
	f := s.flight(phase.Prefill)
	kind, set := Prefill, s.freeSet(r.class)
	*f = flight{active: true, prefill: true, lane: f.lane, reqs: append(f.reqs[:0], r),
		interruptible: r.class == Proactive && !s.cfg.NoPreemption, began: s.now, quantum: quantum > 0}
	if r == s.suspended {
		// The halted chunk continues as it was cut; its requests get no tokens meanwhile.
		kind, set, f.reqs = Resume, r.set, append(f.reqs[:0], s.held...)
		s.forget()
	} else {
		s.pack(f, r)
	}
	s.rows[phase.Prefill] = s.rows[phase.Prefill][:0]
	for _, o := range f.reqs {
		o.inFlight, o.set = true, set
		if kind == Prefill {
			o.chunk = s.now
		}
		s.rows[phase.Prefill] = append(s.rows[phase.Prefill], Rows{o.id, o.rows})
	}
	n := r.rows
	a := Action{Kind: kind, Lane: f.lane, Set: set, ID: r.id, Pos: r.seq.Len(), N: n, Last: n == r.pending(),
		Quantum: quantum}
	if s.cfg.Texts {
		a.Rows = s.rows[phase.Prefill]
	}
	if f.interruptible {
		a.Bound = s.cfg.Bound
	} else {
		a.Quantum = 0
	}
	if f.quantum {
		s.stats.Quanta++
	} else {
		s.sinceChunk = 0
	}
	s.policy.started(s, f)
	s.actions = append(s.actions, a)
}

// pack sets the rows of the prefill of r: a chunk. A prefill of texts also takes the other texts of
// its class that fit into the chunk whole, in order of precedence.
func (s *Scheduler) pack(f *flight, r *request) {
	if r.rows = r.pending(); !s.cfg.Whole {
		r.rows = min(r.rows, s.cfg.Chunk)
	}
	if r.logits {
		r.rows = min(r.rows, s.cfg.LogitRows)
	}
	r.rows = min(r.rows, s.policy.chunk(s, r))
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

// freeSet returns the set of activations for a forward of a class: that of the class, or the other
// one if a halted prefill occupies it.
func (s *Scheduler) freeSet(c Class) uint8 {
	set := uint8(c)
	if s.suspended != nil && s.suspended.set == set {
		return 1 - set
	}
	return set
}

// startDecode runs the decode batch. Every row gets its block first; urgent sequences take blocks
// from less urgent ones. quantum is what pays for the batch.
func (s *Scheduler) startDecode(quantum time.Duration) {
	exclusive := s.prefillWaits()
	limit := s.choose()
	for _, r := range s.batch {
		for r.seq != nil && !s.cache.Reserve(r.seq, r.known) {
			s.preempt(s.policy.victim(s))
		}
	}
	f := s.flight(phase.Decode)
	*f = flight{active: true, lane: f.lane, reqs: f.reqs[:0], began: s.now, quantum: quantum > 0, exclusive: exclusive}
	rows := 0
	for _, r := range s.batch {
		if r.seq == nil {
			continue
		}
		if rows+r.pending() > max(s.cfg.BatchRows, len(s.batch)) {
			limit = rows // the request comes first in a batch without drafts
			continue
		}
		r.inFlight, r.rows = true, r.pending()
		rows += r.rows
		f.reqs = append(f.reqs, r)
	}
	if len(f.reqs) == 0 {
		// All ready sequences lost their blocks to sequences in prefill, which run now. This ends,
		// because each repetition preempts at least one sequence.
		f.active = false
		s.dispatch()
		return
	}
	s.sinceChunk++
	s.addDrafts(f, limit-rows)
	s.policy.started(s, f)
	s.actions = append(s.actions, Action{Kind: Decode, Lane: f.lane, Set: s.freeSet(f.reqs[0].class),
		Rows: s.rows[phase.Decode]})
}

// addDrafts gives free rows of a decode batch to drafted tokens as far as there are blocks. No
// sequence pauses or is preempted for a draft.
func (s *Scheduler) addDrafts(f *flight, free int) {
	if free > 0 {
		s.drafts = s.drafts[:0]
		for _, r := range f.reqs {
			n := s.draftable(r)
			s.drafts = append(s.drafts, Draft{ID: r.id, Known: r.known, Tokens: n, Certain: min(r.certain, n),
				Chance: r.chance})
		}
		s.cfg.Allot(s.drafts, free)
		for i, r := range f.reqs {
			n := min(s.drafts[i].Rows, s.drafts[i].Tokens, free)
			if n > 0 {
				n = s.reserveDraft(r, n)
				r.rows += n
				free -= n
			}
		}
	}
	rows := s.rows[phase.Decode][:0]
	for _, r := range f.reqs {
		rows = append(rows, Rows{r.id, r.rows})
	}
	s.rows[phase.Decode] = rows
}

// draftable returns how many drafted tokens of r may be verified. With recurrent states a draft
// ends before the end of a block, where a copy of the state is kept of verified tokens only.
func (s *Scheduler) draftable(r *request) int {
	if s.cache.Rewinds() {
		return r.draft
	}
	return min(r.draft, kvcache.BlockTokens-1-r.known%kvcache.BlockTokens)
}

// reserveDraft reserves blocks for the known positions of r and up to n drafted ones, and returns
// how many drafted ones it has reserved. A draft takes a further block only if each other resident
// sequence is left one, so that none is preempted because of a draft; otherwise it ends with the
// last block of the known positions.
func (s *Scheduler) reserveDraft(r *request, n int) int {
	copies := 0
	if s.cfg.CopyStates {
		copies = n - 1
	}
	if !s.cache.ReserveDraft(r.seq, copies) {
		return 0
	}
	if s.cache.ReserveLeaving(r.seq, r.known+n, len(s.running)-1) {
		return n
	}
	return min(n, kvcache.BlocksFor(r.known)*kvcache.BlockTokens-r.known)
}

// choose fills s.batch in order of precedence and returns how many rows it may have. A sequence
// that is left out pauses: it keeps its blocks and joins a later batch.
func (s *Scheduler) choose() (rows int) {
	s.batch = s.batch[:0]
	for _, r := range s.running {
		if r.decodable() {
			s.batch = append(s.batch, r)
		}
	}
	ready := len(s.batch)
	s.batch, rows = s.policy.batch(s, s.batch)
	rows = min(rows, s.cfg.BatchRows)
	s.batch = s.batch[:min(len(s.batch), s.cfg.MaxRunning+1)]
	s.stats.Evictions += int64(ready - len(s.batch))
	return rows
}
