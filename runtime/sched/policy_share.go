package sched

import "time"

func init() { policies["share"] = func() policy { return &share{} } }

// share is the second scheme that Agent.xpu section 3 compares: both classes get the same time, in
// slices. The class that has used less time runs, and a proactive prefill halts when its slice is
// over. Decode batches are of one class.
type share struct {
	base
	used [2]time.Duration // by forwards of each class
}

func (p *share) next(s *Scheduler, w work) (*request, time.Duration) {
	busy := [2]bool{}
	for c := range busy {
		busy[c] = w.prefill[c] != nil || w.decode[c] > 0
	}
	for c := range busy {
		if !busy[c] { // an idle class accumulates no claim
			p.used[c] = max(p.used[c], p.used[1-c])
		}
	}
	c := p.leastServed()
	if !busy[c] {
		c = 1 - c
	}
	r := s.within(w, c)
	if r != nil && c == Proactive && busy[Reactive] {
		return r, s.cfg.Slice
	}
	return r, 0
}

// leastServed returns the class that has used less time.
func (p *share) leastServed() Class {
	if p.used[Proactive] < p.used[Reactive] {
		return Proactive
	}
	return Reactive
}

func (p *share) batch(s *Scheduler, ready []*request) ([]*request, int) {
	return inOrder(s, ofClass(ready, p.leastServed()))
}

func (p *share) landed(s *Scheduler, f *flight, _ bool) {
	if len(f.reqs) > 0 {
		p.used[f.reqs[0].class] += s.now - f.began
	}
}
