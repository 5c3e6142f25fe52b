package sched

import "time"

func init() { policies["preempt"] = preempt{} }

// preempt gives way at once and for good, the first of the schemes that Agent.xpu section 3.2.2
// compares: while a reactive request lives, proactive ones have neither time nor blocks, and
// what was computed of them is computed again. An aged one is reactive. Inside a class it orders as
// sandwich does, so that what tells the two apart is what giving way costs.
type preempt struct{}

func (preempt) rules() rules { return rules{ranks: true, expels: true, lifts: true} }

func (preempt) next(s *Scheduler, w work) (*request, time.Duration) {
	if w.prefill[Reactive] != nil || w.decode[Reactive] > 0 {
		return s.within(w, Reactive), 0
	}
	return s.within(w, Proactive), 0
}

func (preempt) batch(s *Scheduler, ready []*request) ([]*request, int) {
	return inOrder(s, ofClass(ready, Reactive))
}

func (preempt) victim(s *Scheduler) *request { return lowest(s) }

func (preempt) halts(_ *Scheduler, r *request) bool { return r.class == Reactive }

// ofClass keeps those of a class, or all where there are none.
func ofClass(ready []*request, c Class) []*request {
	n := 0
	for i, r := range ready {
		if r.class == c {
			ready[n], ready[i] = r, ready[n]
			n++
		}
	}
	if n == 0 {
		n = len(ready)
	}
	return ready[:n]
}
