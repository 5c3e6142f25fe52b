package sched

import (
	"fmt"
	"slices"

	"sandwich/runtime/kvcache"
)

// Check verifies the invariants of the scheduler and its cache. Tests and SANDWICH_VERIFY=1 call
// it.
func (s *Scheduler) Check() error {
	open := make([]*kvcache.Sequence, len(s.running))
	slots := make(map[int]bool)
	for i, r := range s.running {
		open[i] = r.seq
		switch {
		case slots[r.slot] || r.slot < 0 || r.slot >= s.cfg.residents():
			return fmt.Errorf("sched: slot %d of request %d is taken or outside 0..%d", r.slot, r.id,
				s.cfg.residents()-1)
		case i > 0 && !s.running[i-1].before(r):
			return fmt.Errorf("sched: running request %d is out of order", r.id)
		case s.flightsOf(r) > 1 || r.inFlight != (s.flightsOf(r) == 1):
			return fmt.Errorf("sched: request %d is inconsistent with the forwards in flight", r.id)
		case r.loading != slices.Contains(s.loads, r) || r.loading && r.inFlight:
			return fmt.Errorf("sched: request %d is inconsistent with the loads", r.id)
		case !r.dead && s.byID[r.id] != r:
			return fmt.Errorf("sched: running request %d is unknown", r.id)
		}
		slots[r.slot] = true
		if r.held != slices.Contains(s.held, r) || r.held && s.suspended == nil {
			return fmt.Errorf("sched: request %d is inconsistent with the halted forward", r.id)
		}
	}
	if err := s.checkQueues(); err != nil {
		return err
	}
	return s.cache.Check(open)
}

func (s *Scheduler) checkQueues() error {
	fresh := [2]int{}
	for u, q := range s.queue {
		for i, r := range q {
			switch {
			case r.seq != nil || r.class != Class(u) || s.byID[r.id] != r:
				return fmt.Errorf("sched: waiting request %d is in the wrong queue", r.id)
			case i > 0 && !q[i-1].before(r):
				return fmt.Errorf("sched: waiting request %d is out of order", r.id)
			}
			if !r.resumed {
				fresh[r.stated]++
			}
		}
	}
	if fresh != s.fresh {
		return fmt.Errorf("sched: %v requests wait that never ran, %v counted", fresh, s.fresh)
	}
	return nil
}

// flightsOf returns the number of forwards in flight that contain a request.
func (s *Scheduler) flightsOf(r *request) (n int) {
	for i := range s.flights {
		if f := &s.flights[i]; f.active && slices.Contains(f.reqs, r) {
			n++
		}
	}
	return n
}
