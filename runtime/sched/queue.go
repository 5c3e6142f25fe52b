package sched

import "slices"

// enqueue inserts r into the queue of its class.
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

// reorder restores the order of all lists after classes or ranks of requests changed.
func (s *Scheduler) reorder() {
	n, q := 0, s.queue[Proactive]
	for _, r := range q {
		if r.class == Proactive {
			q[n] = r
			n++
		} else {
			s.queue[Reactive] = append(s.queue[Reactive], r)
		}
	}
	clear(q[n:])
	s.queue[Proactive] = q[:n]
	for _, list := range s.lists() {
		slices.SortFunc(list, precedence)
	}
}

// lists returns the lists that contain every live request once.
func (s *Scheduler) lists() [3][]*request {
	return [...][]*request{s.running, s.queue[Reactive], s.queue[Proactive]}
}

// takeSlot returns a free slot for a sequence that becomes resident.
func (s *Scheduler) takeSlot() int {
	n := len(s.slots)
	if n == 0 {
		return len(s.running) // slots 0 .. len(running)-1 are in use
	}
	slot := s.slots[n-1]
	s.slots = s.slots[:n-1]
	return slot
}

// release takes the blocks and the slot from a resident request.
func (s *Scheduler) release(r *request) {
	s.cache.Free(r.seq)
	r.seq, r.draft, r.checked, r.again = nil, 0, 0, 0
	s.slots = append(s.slots, r.slot)
	i := slices.Index(s.running, r)
	s.running = slices.Delete(s.running, i, i+1)
	s.releases++
	if r.held {
		s.forget()
	}
}

// forget drops the halted forward: it resumes, or its requests start again.
func (s *Scheduler) forget() {
	for _, r := range s.held {
		r.held = false
	}
	s.suspended, s.held = nil, s.held[:0]
}

// preempt takes a sequence's blocks and returns it to its queue. Its full blocks stay in the prefix
// cache until they are needed.
func (s *Scheduler) preempt(r *request) {
	s.release(r)
	r.resumed = true
	s.enqueue(r)
	s.stats.Preemptions++
	s.actions = append(s.actions, Action{Kind: Preempt, ID: r.id})
}

// leave ends a request that finished or was cancelled. A request in flight keeps its blocks until
// the forward lands, because workers write to them, and one that loads until its load ends.
func (s *Scheduler) leave(r *request) {
	delete(s.byID, r.id)
	if r.unready {
		s.unready[r.stated]--
		s.spare = append(s.spare, r)
		return
	}
	s.lives[r.class]--
	if r.writes() {
		r.dead = true
		return
	}
	if r.seq != nil {
		s.release(r)
	} else {
		s.unqueue(r)
	}
	if s.blocked == r {
		s.blocked = nil
	}
	s.spare = append(s.spare, r)
}

func (s *Scheduler) reject(id ID, why Reason) {
	s.stats.Rejections++
	s.actions = append(s.actions, Action{Kind: Reject, ID: id, Reason: why})
}
