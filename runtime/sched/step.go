package sched

import (
	"math"
	"slices"
	"time"

	"sandwich/runtime/phase"
)

// Step applies the events up to now and returns what to do, ending with the next forward of each
// lane that is free if there is anything to compute. The returned slice is valid until the next
// Step. If now goes backwards, time continues from where it was. Events of requests that have ended
// are ignored. Step may be called while a forward is in flight, so that a rejection does not wait
// for the end of the forward.
func (s *Scheduler) Step(now time.Duration, events []Event) []Action {
	s.actions, s.arrived = s.actions[:0], s.arrived[:0]
	if now += s.skew; now < s.now {
		s.skew += s.now - now
		now = s.now
	}
	s.now = now
	for i := range events {
		s.apply(now, &events[i])
	}
	s.promote(now)
	s.expel()
	s.admit(now)
	s.rejectOverflow()
	s.halt()
	s.dispatch()
	return s.actions
}

// halt stops the prefill in flight at its next op if all of its requests have ended, or if the
// policy halts it for a request that arrived.
func (s *Scheduler) halt() {
	f := s.flight(phase.Prefill)
	if !f.active || !f.prefill || f.halting {
		return
	}
	f.halting = !slices.ContainsFunc(f.reqs, func(r *request) bool { return !r.dead })
	for _, r := range s.arrived {
		f.halting = f.halting || f.interruptible && s.byID[r.id] == r && !r.unready && !r.loading &&
			s.policy.halts(s, r)
	}
	if f.halting {
		s.haltFlight(f)
	}
}

// haltFlight stops a prefill in flight at its next op.
func (s *Scheduler) haltFlight(f *flight) {
	f.halting = true
	s.actions = append(s.actions, Action{Kind: Halt, Lane: f.lane, ID: f.reqs[0].id})
}

func (s *Scheduler) apply(now time.Duration, e *Event) {
	switch e.Kind {
	case Arrive:
		s.arrive(now, e)
	case Ready:
		if r := s.byID[e.ID]; r != nil && r.unready {
			s.makeReady(r)
		}
	case Loaded, LoadFailed:
		s.endLoad(e.ID, e.Kind == Loaded)
	case Done:
		s.land(e, true)
	case Stopped:
		s.land(e, false)
	case Sampled:
		if r := s.byID[e.ID]; r != nil {
			s.sampled(now, r, e)
		}
	case Cancel:
		if r := s.byID[e.ID]; r != nil {
			s.leave(r)
		}
	case Finish:
		if r := s.byID[e.ID]; r != nil {
			s.accept(r, e.Tokens)
			if r.seq != nil {
				s.served(now - r.admitted)
			}
			s.leave(r)
		}
	}
}

// arrive puts a request into its queue, or refuses one that can never run.
func (s *Scheduler) arrive(now time.Duration, e *Event) {
	prompt := e.PromptTokens
	if e.Prompt != nil {
		prompt = len(e.Prompt)
	}
	switch {
	case s.byID[e.ID] != nil || prompt < 1 || e.MaxTokens < 1 || e.Class > Proactive:
		s.reject(e.ID, Invalid)
		return
	case e.MaxTokens > math.MaxInt-prompt || !s.cache.Fits(prompt+e.MaxTokens):
		s.reject(e.ID, TooLong)
		return
	}
	r := s.newRequest()
	r.id, r.stated, r.class, r.progress, r.order = e.ID, e.Class, e.Class, now, s.arrivals
	if s.rules.ignoresClass {
		r.class = Reactive
	}
	if s.rules.priorities {
		r.priority, r.rank = e.Priority, e.Priority
		s.lower(r)
	}
	r.known, r.limit, r.salt = prompt, prompt+e.MaxTokens, e.Salt
	r.named, r.reuse = e.Prompt != nil, e.Prompt != nil && !e.Logits && !s.cfg.Whole
	if r.named {
		r.tokens = append(slices.Grow(r.tokens[:0], r.limit), e.Prompt...)
	}
	r.logits = e.Logits
	if r.reuse {
		r.stored = e.Stored
	}
	r.ends = append(r.ends[:0], e.Ends...)
	s.arrivals++
	s.byID[r.id] = r
	if r.unready = e.Pending; r.unready {
		s.unready[r.stated]++
	} else {
		s.enqueue(r)
		s.lives[r.class]++
	}
	s.arrived = append(s.arrived, r)
}

// makeReady puts a request that was pending into its queue, at the place of its arrival.
func (s *Scheduler) makeReady(r *request) {
	r.unready = false
	s.unready[r.stated]--
	s.enqueue(r)
	s.lives[r.class]++
	s.arrived = append(s.arrived, r)
}

func (s *Scheduler) newRequest() *request {
	n := len(s.spare)
	if n == 0 {
		return &request{}
	}
	r := s.spare[n-1]
	s.spare = s.spare[:n-1]
	*r = request{tokens: r.tokens[:0], ends: r.ends[:0]}
	return r
}
