package sched

import "time"

func init() { policies["share"] = share{} }

// share gives both classes the same time, in slices, the second of the schemes that Agent.xpu
// section 3 compares: the class runs that has had less of it, and a proactive prefill
// halts when its slice is over. Batches are of one class.
type share struct{}

func (share) rules() rules { return rules{} }

func (share) next(s *Scheduler, w work) (*request, time.Duration) {
	busy := [2]bool{}
	for c := range busy {
		busy[c] = w.prefill[c] != nil || w.decode[c] > 0
	}
	for c := range busy {
		if !busy[c] { // who has nothing to do saves no time up
			s.used[c] = max(s.used[c], s.used[1-c])
		}
	}
	c := s.poorer()
	if !busy[c] {
		c = 1 - c
	}
	r := s.within(w, c)
	if r != nil && c == Proactive && busy[Reactive] {
		return r, s.cfg.Slice
	}
	return r, 0
}

// poorer is the class that has had less time.
func (s *Scheduler) poorer() Class {
	if s.used[Proactive] < s.used[Reactive] {
		return Proactive
	}
	return Reactive
}

func (share) batch(s *Scheduler, ready []*request) ([]*request, int) {
	return inOrder(s, ofClass(ready, s.poorer()))
}

func (share) victim(s *Scheduler) *request { return lowest(s) }

func (share) halts(*Scheduler, *request) bool { return false }
