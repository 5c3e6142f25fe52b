package engine

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload"
	"sandwich/runtime/sched"
)

// forwardGate decides after each step of a forward whether the forward halts: if stop is set, or if
// the next step would exceed the quantum. It records the duration of steps for the table of costs.
// One worker calls it; stop may be set by any goroutine.
type forwardGate struct {
	stop    atomic.Bool
	quantum time.Duration // 0: unlimited
	steps   []plannedStep // by step
	spans   []stepTime
	began   time.Time
	last    time.Time
	at      int             // index of the running step
	upload  *offload.Upload // copies keys and values to the device; nil: none
}

// plannedStep is one step of a forward: one of the `of` steps of an op, and its predicted time, 0
// where no limit needs it.
type plannedStep struct {
	op, of int
	takes  time.Duration
}

// stepTime is the measured time of the steps [from, to) together.
type stepTime struct {
	from, to int
	took     time.Duration
}

// start resets the gate for a forward that runs from a step on.
func (p *forwardGate) start(at int) {
	p.spans = p.spans[:0]
	p.began = time.Now()
	p.last, p.at = p.began, at
}

// Passed implements exec.Gate.
func (p *forwardGate) Passed(next int) (halt bool) {
	now := time.Now()
	p.spans = append(p.spans, stepTime{p.at, next, now.Sub(p.last)})
	p.at, p.last = next, now
	if p.upload != nil && next > 0 { // other workers may not have completed the last step
		p.upload.Reached(p.steps[next-1].op)
	}
	if p.stop.Load() {
		return true
	}
	return p.quantum > 0 && now.Sub(p.began)+p.next(next) > p.quantum
}

// next returns the predicted time of a step, 0 after the last one.
func (p *forwardGate) next(step int) time.Duration {
	if step >= len(p.steps) {
		return 0
	}
	return p.steps[step].takes
}

// loadOf returns the amount of work in a batch.
func loadOf(b *kvcache.Batch) cost.Load {
	l := cost.Load{Rows: b.Rows(), Heads: len(b.LogitRows)}
	for i := range b.Spans {
		s := cost.Span(b.Spans[i].Pos, b.Spans[i].Rows)
		l.Positions += s.Positions
	}
	return l
}

// learn updates the table of costs with the step times of the forward that ended.
func (c *lane) learn(act *sched.Action) {
	of := act.Kind.Phase()
	l := loadOf(&c.batch)
	var inside time.Duration
	for _, s := range c.gate.spans {
		inside += s.took
		if s.to == s.from+1 {
			a := c.gate.steps[s.from]
			c.costs.Observe(a.op, a.of, s.took)
			if a.of > 1 {
				c.margin.note(s.took, a.takes)
			}
			continue
		}
		// With several ranks, times are known only between gathers and cuts. The time between two
		// of them is divided among the ops in proportion to their predictions.
		var all time.Duration
		for _, a := range c.gate.steps[s.from:s.to] {
			all += c.costs.Op(of, a.op, l) / time.Duration(a.of)
		}
		for _, a := range c.gate.steps[s.from:s.to] {
			share := 1 / float64(s.to-s.from) // without predictions
			if all > 0 {
				share = float64(c.costs.Op(of, a.op, l)/time.Duration(a.of)) / float64(all)
			}
			c.costs.Observe(a.op, a.of, time.Duration(share*float64(s.took)))
		}
	}
	c.costs.Learn(of, l)
	if c.gap > 0 { // and the overhead before the first op and after the last one
		c.costs.ObserveBetween(c.gap + max(0, c.took-inside))
	}
}
