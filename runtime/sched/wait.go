package sched

import (
	"slices"
	"time"
)

// departures measures how often requests of a class, as their senders stated it, leave their queue
// to run, while other requests of the class wait.
type departures struct {
	last     time.Duration // time of the last one
	interval time.Duration // moving mean between two; 0: unknown
	waiting  bool          // requests have waited since the last one
	refused  int           // requests refused since the last one
}

// maxJump bounds an interval, as a multiple of the mean: longer ones are taken for a clock that
// jumped.
const maxJump = 10

// departed notes that a request that never ran leaves its queue.
func (s *Scheduler) departed(r *request) {
	t := &s.departures[r.stated]
	if t.waiting {
		if d := s.now - t.last; t.interval == 0 {
			t.interval = d
		} else {
			t.interval += (min(d, maxJump*t.interval) - t.interval) / 8
		}
	}
	t.last, t.waiting, t.refused = s.now, s.fresh[r.stated] > 0, 0
}

// served updates the moving mean of the time that a request stays resident.
func (s *Scheduler) served(d time.Duration) {
	if s.service == 0 {
		s.service = d
	}
	s.service += (d - s.service) / 8
}

// wait estimates the time until a number of requests of a class have left their queue; 0 if it is
// unknown. A departure that is late by some time is expected to take as long again. No proactive
// request leaves before the reactive queue is empty, unless it has aged.
func (s *Scheduler) wait(c Class, places int) time.Duration {
	t := &s.departures[c]
	if t.interval == 0 {
		return time.Duration(places) * s.service / time.Duration(s.cfg.MaxRunning)
	}
	next := t.interval
	if t.waiting {
		next = max(next, min(s.now-t.last, maxJump*t.interval))
	}
	if n := len(s.queue[Reactive]); c == Proactive && n > 0 && !s.rules.ignoresClass && !s.rules.promotes {
		next = max(next, min(s.wait(Reactive, n), s.untilAged()))
	}
	return next + time.Duration(places-1)*t.interval
}

// untilAged returns the time until the first proactive request that waits, or one that arrives now,
// has aged.
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

// Place returns how many requests leave the queues before a waiting one, and an estimate of how
// long it will wait: by the recent rate at which requests of its class left, or else by the mean
// time that requests stay resident. The estimate is 0 if neither is known or the request does not
// wait.
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
	if s.departures[r.stated].interval == 0 {
		own = ahead
	}
	return ahead, s.wait(r.stated, own+1)
}

// rejectFull refuses r until a place in its queue is free, which is when one of its class departs.
// Several requests that are refused before that get consecutive places, up to the length of the
// queue.
func (s *Scheduler) rejectFull(r *request) {
	t := &s.departures[r.stated]
	t.refused++
	places := min(t.refused, s.cfg.Queue+1)
	if t.interval == 0 && r.class == Proactive {
		places += len(s.queue[Reactive])
	}
	s.reject(r.id, QueueFull)
	s.actions[len(s.actions)-1].RetryAfter = max(s.wait(r.stated, places), time.Second).Round(time.Second)
}
