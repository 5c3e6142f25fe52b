package sched

import (
	"slices"
	"time"

	"sandwich/runtime/kvcache"
)

// land ends the forward in flight on the lane of e. A forward that is done has computed its
// positions; one that halted has computed none and may be resumed.
func (s *Scheduler) land(e *Event, done bool) {
	if int(e.Lane) >= len(s.flights) || !s.flights[e.Lane].active {
		return
	}
	f := &s.flights[e.Lane]
	f.active = false
	if !done {
		s.stats.Stops++
	}
	s.policy.landed(s, f, done)
	halted := !done && f.interruptible && !slices.ContainsFunc(f.reqs, func(r *request) bool { return r.dead })
	for _, r := range f.reqs {
		r.inFlight = false
		if s.blocked != nil && s.blocked.urgency() < r.urgency() {
			s.blocked = nil // r can be preempted for it from now on
		}
		if r.dead {
			s.release(r)
			s.spare = append(s.spare, r)
			continue
		}
		if done {
			n := min(r.rows, r.pending())
			s.computed(r, n)
			r.checked, r.again = r.rows-n, 0
		}
	}
	if halted {
		s.suspend(f.reqs, e.Ahead)
	}
	f.reqs = f.reqs[:0]
}

// suspend keeps a halted forward. It can be resumed while all of its requests are resident.
func (s *Scheduler) suspend(reqs []*request, ahead time.Duration) {
	s.suspended, reqs[0].ahead = reqs[0], ahead
	s.held = append(s.held[:0], reqs...)
	for _, r := range reqs {
		r.held = true
	}
}

func (s *Scheduler) computed(r *request, n int) {
	at := r.seq.Len()
	s.stats.RecomputedTokens += int64(max(0, min(r.reached, at+n)-at))
	r.reached = max(r.reached, at+n)
	if r.named {
		s.cache.Append(r.seq, r.tokens[at:at+n])
	} else {
		s.cache.Advance(r.seq, n)
	}
}

// sampled appends new tokens to a request. All but the last are drafted tokens that the forward has
// computed; the rest of the draft is dropped, and its positions are overwritten.
func (s *Scheduler) sampled(now time.Duration, r *request, e *Event) {
	n := len(e.Tokens)
	why := TooLong
	switch {
	case n == 0 && r.named:
		why = Invalid
	case r.known+max(n, 1) <= r.limit:
		s.extend(r, e)
		r.progress = now
		return
	}
	id := r.id
	s.leave(r)
	s.reject(id, why)
}

// extend appends the tokens of a Sampled and its draft to a request.
func (s *Scheduler) extend(r *request, e *Event) {
	n := max(len(e.Tokens), 1)
	if r.named {
		r.tokens = append(r.tokens[:r.known], e.Tokens...)
	}
	r.known += n
	s.settle(r, min(n-1, r.checked))
	r.draft = 0
	if r.named {
		r.draft = min(len(e.Draft), r.limit-r.known)
		r.certain, r.chance = e.Certain, e.Chance
		r.tokens = append(r.tokens, e.Draft[:r.draft]...)
	}
}

// endLoad ends the load of a request. If it failed, the request returns to its queue and computes
// its prompt.
func (s *Scheduler) endLoad(id ID, filled bool) {
	i := slices.IndexFunc(s.loads, func(r *request) bool { return r.id == id })
	if i < 0 {
		return
	}
	r := s.loads[i]
	s.loads = slices.Delete(s.loads, i, i+1)
	r.loading = false
	switch {
	case r.dead:
		s.release(r)
		s.spare = append(s.spare, r)
	case filled:
		at, n := r.seq.Len(), min(r.stored, (r.known-1)/kvcache.BlockTokens*kvcache.BlockTokens)
		s.cache.EndLoad(r.seq, r.tokens[at:n])
		r.reached = max(r.reached, n)
		s.stats.LoadedTokens += int64(n - at)
	default:
		r.stored = 0
		s.release(r)
		r.resumed = true
		s.enqueue(r)
	}
	if !r.dead {
		s.arrived = append(s.arrived, r) // it may halt a prefill now
	}
	s.blocked = nil // r can be preempted from now on
}

// accept appends drafted tokens that the last forward of a request has computed, so that their
// blocks can be shared after it has ended.
func (s *Scheduler) accept(r *request, tokens []int32) {
	n := min(len(tokens), r.checked)
	if n == 0 || r.seq == nil || !r.named || r.known+n > r.limit {
		return
	}
	r.tokens = append(r.tokens[:r.known], tokens[:n]...)
	r.known += n
	s.settle(r, n)
}

// settle records that the first tokens of the computed part of a draft were accepted. If a
// recurrent state has passed a rejected token and no copy of it was kept, the accepted ones must be
// computed again.
func (s *Scheduler) settle(r *request, accepted int) {
	whole := accepted == r.checked
	switch {
	case accepted == 0:
	case whole || s.cache.KeepsDraft(r.seq, accepted):
		s.computed(r, accepted)
	default:
		r.again = accepted
	}
	if !whole {
		s.cache.RejectDraft(r.seq)
	}
	r.checked = 0
}
