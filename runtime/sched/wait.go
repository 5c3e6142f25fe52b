package sched

import (
	"slices"
	"time"
)

// turns is how often requests of a class leave their queue to run, as their senders state it: by
// what was measured while somebody waited, whatever the policy.
type turns struct {
	last    time.Duration // when one did
	every   time.Duration // moving mean between two, 0: not known
	waiting bool          // somebody has waited since the last
	refused int           // since the last
}

// jump is from how many times the usual on the clock is taken to have jumped.
const jump = 10

// taken notes that a request that never ran leaves its queue.
func (s *Scheduler) taken(r *request) {
	t := &s.turns[r.stated]
	if t.waiting {
		if d := s.now - t.last; t.every == 0 {
			t.every = d
		} else {
			t.every += (min(d, jump*t.every) - t.every) / 8
		}
	}
	t.last, t.waiting, t.refused = s.now, s.fresh[r.stated] > 0, 0
}

// served keeps the moving mean of how long a request stays resident.
func (s *Scheduler) served(d time.Duration) {
	if s.service == 0 {
		s.service = d
	}
	s.service += (d - s.service) / 8
}

// wait is how long it takes until so many requests of a class have left their queue, 0 where that
// is not known. One that has been due for longer than usual is late by as much again, and no
// proactive one is due before the reactive queue is empty, unless it has aged.
func (s *Scheduler) wait(c Class, places int) time.Duration {
	t := &s.turns[c]
	if t.every == 0 {
		return time.Duration(places) * s.service / time.Duration(s.cfg.MaxRunning)
	}
	next := t.every
	if t.waiting {
		next = max(next, min(s.now-t.last, jump*t.every))
	}
	if n := len(s.queue[Reactive]); c == Proactive && n > 0 && !s.rules.blind && !s.rules.lifts {
		next = max(next, min(s.wait(Reactive, n), s.untilAged()))
	}
	return next + time.Duration(places-1)*t.every
}

// untilAged is how long it takes until the first proactive request that waits, or would, has aged.
func (s *Scheduler) untilAged() time.Duration {
	q := s.queue[Proactive]
	switch {
	case s.cfg.Aging < 0:
		return unpredicted
	case len(q) == 0:
		return s.cfg.Aging
	case q[0].promoted:
		return 0
	}
	return max(0, q[0].progress+s.cfg.Aging-s.now)
}

// Place is how many requests wait before one that waits, by the order in which they are taken from
// the queues, and how long it will wait if those of its class are taken as fast as others were
// lately, or, before that is known, if requests take as long as those before did; 0 where neither
// is known, or it does not wait.
func (s *Scheduler) Place(id ID) (ahead int, wait time.Duration) {
	r := s.byID[id]
	if r == nil || r.seq != nil {
		return 0, 0
	}
	own := 0
	for _, q := range s.queue {
		n, _ := slices.BinarySearchFunc(q, r, precedence)
		ahead += n
		for _, o := range q[:n] {
			if o.stated == r.stated {
				own++
			}
		}
	}
	if s.turns[r.stated].every == 0 {
		own = ahead
	}
	return ahead, s.wait(r.stated, own+1)
}

// rejectFull refuses r until a place of its queue is free: when one of its class goes on from
// there. Of several that are refused before that each gets a place of its own, as far as the queue
// is long.
func (s *Scheduler) rejectFull(r *request) {
	t := &s.turns[r.stated]
	t.refused++
	places := min(t.refused, s.cfg.Queue+1)
	if t.every == 0 && r.class == Proactive {
		places += len(s.queue[Reactive])
	}
	s.reject(r.id, QueueFull)
	s.actions[len(s.actions)-1].RetryAfter = max(s.wait(r.stated, places), time.Second).Round(time.Second)
}
