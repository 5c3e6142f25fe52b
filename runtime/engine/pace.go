package engine

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/sched"
)

// pace is the gate of the engine's forwards: a worker asks it behind every step. It halts a forward
// that was told to, and a prefill whose quantum is over or would be within the next step. It notes
// how long steps took, for the table of costs.
type pace struct {
	stop    atomic.Bool
	quantum time.Duration // 0: none
	ahead   []ahead       // by step
	spans   []timed
	began   time.Time
	last    time.Time
	at      int // step that runs
}

// ahead is a step of the forward: one of `of` in which an op runs, and its predicted time, where
// that is wanted.
type ahead struct {
	op, of int
	takes  time.Duration
}

// timed is steps [from, to) that took so long together.
type timed struct {
	from, to int
	took     time.Duration
}

// start is called when the forward begins to run.
func (p *pace) start(at int) {
	p.spans = p.spans[:0]
	p.began = time.Now()
	p.last, p.at = p.began, at
}

// Passed implements exec.Gate.
func (p *pace) Passed(next int) (halt bool) {
	now := time.Now()
	p.spans = append(p.spans, timed{p.at, next, now.Sub(p.last)})
	p.at, p.last = next, now
	if p.stop.Load() {
		return true
	}
	return p.quantum > 0 && now.Sub(p.began)+p.next(next) > p.quantum
}

// next is the predicted time of a step, 0 behind the last one.
func (p *pace) next(step int) time.Duration {
	if step >= len(p.ahead) {
		return 0
	}
	return p.ahead[step].takes
}

// loadOf is what a batch works on.
func loadOf(b *kvcache.Batch) cost.Load {
	l := cost.Load{Rows: b.Rows(), Heads: len(b.LogitRows)}
	for i := range b.Spans {
		s := cost.Span(b.Spans[i].Pos, b.Spans[i].Rows)
		l.Positions += s.Positions
	}
	return l
}

// learn takes the times of the forward that ended into the table.
func (c *cores) learn(act *sched.Action) {
	of := act.Kind.Phase()
	l := loadOf(&c.batch)
	var inside time.Duration
	for _, s := range c.pace.spans {
		inside += s.took
		if s.to == s.from+1 {
			a := c.pace.ahead[s.from]
			c.costs.Observe(a.op, a.of, s.took)
			if a.of > 1 {
				c.margin.note(s.took, a.takes)
			}
			continue
		}
		// Ranks meet at gathers and cuts only: what they did between is parted as it was predicted.
		var all time.Duration
		for _, a := range c.pace.ahead[s.from:s.to] {
			all += c.costs.Op(of, a.op, l) / time.Duration(a.of)
		}
		for _, a := range c.pace.ahead[s.from:s.to] {
			share := float64(c.costs.Op(of, a.op, l)/time.Duration(a.of)) / float64(max(all, 1))
			c.costs.Observe(a.op, a.of, time.Duration(share*float64(s.took)))
		}
	}
	c.costs.Learn(of, l)
	if c.gap > 0 { // with the way into the first op and out of the last one
		c.costs.ObserveBetween(c.gap + max(0, c.took-inside))
	}
}
