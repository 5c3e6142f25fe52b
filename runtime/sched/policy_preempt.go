package sched

import "time"

func init() { policies["preempt"] = func() policy { return preempt{} } }

// preempt is the first scheme that Agent.xpu section 3.2.2 compares: while a reactive request
// lives, proactive requests get neither time nor blocks, and their results are computed again
// later. An aged request becomes reactive. Within a class it orders requests as sandwich does, so
// that the difference between both is the cost of preemption.
type preempt struct{ base }

func (preempt) rules() rules { return rules{priorities: true, expels: true, promotes: true} }

func (preempt) next(s *Scheduler, w work) (*request, time.Duration) {
	if w.prefill[Reactive] != nil || w.decode[Reactive] > 0 {
		return s.within(w, Reactive), 0
	}
	return s.within(w, Proactive), 0
}

func (preempt) batch(s *Scheduler, ready []*request) ([]*request, int) {
	return inOrder(s, ofClass(ready, Reactive))
}

func (preempt) halts(_ *Scheduler, r *request) bool { return r.class == Reactive }
