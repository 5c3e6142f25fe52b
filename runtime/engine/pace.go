package engine

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/exec"
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

// plan lists the steps of the forward that begins, and cuts the ops of a new one that are
// predicted to last longer than its bound. A resumed one keeps its cut.
func (c *cores) plan(act *sched.Action) {
	p, cuts := &c.pace, &c.cuts[act.Set]
	p.quantum = act.Quantum
	if act.Kind != sched.Resume {
		*cuts = (*cuts)[:0]
	}
	l, ops := loadOf(&c.batch), c.runner.Model.Ops
	p.ahead = p.ahead[:0]
	var since time.Duration // the forward could halt
	for i := range ops {
		a := ahead{op: i, of: 1}
		if act.Bound > 0 || act.Quantum > 0 {
			a.takes = c.costs.Op(cost.Prefill, i, l)
		}
		if act.Bound > 0 && act.Kind == sched.Prefill {
			*cuts = append(*cuts, 0)
			if since = c.cut(*cuts, i, since, a.takes, act.Bound); c.runner.meets(i) {
				since = 0
			}
		}
		if i < len(*cuts) {
			a.of = max(1, int((*cuts)[i]))
		}
		a.takes /= time.Duration(a.of)
		for range a.of {
			p.ahead = append(p.ahead, a)
		}
	}
	c.runner.Cut(*cuts)
	for s := len(p.ahead) - 2; s >= 0; s-- { // what a gate that lets step s begin lets run
		if i := p.ahead[s].op; !c.runner.meets(i) && (i >= len(*cuts) || (*cuts)[i] == 0) {
			p.ahead[s].takes += p.ahead[s+1].takes
		}
	}
}

// cut gives op i, the last of cuts, its steps. Where ranks go on without each other for longer than
// the bound together, they meet before it. It returns how long they do so behind it.
func (c *cores) cut(cuts []uint16, i int, since, takes, bound time.Duration) time.Duration {
	if since > 0 && since+takes > bound {
		cuts[i-1], since = max(cuts[i-1], 1), 0
	}
	if takes > bound && exec.Cuttable(&c.runner.Model.Ops[i]) {
		cuts[i] = uint16(min((takes+bound-1)/bound, mostCuts))
		return 0
	}
	return since + takes
}

// mostCuts bounds the steps of one op.
const mostCuts = 256

// learn takes the times of the forward that ended into the table.
func (c *cores) learn(act *sched.Action) {
	phase := cost.Prefill
	if act.Kind == sched.Decode {
		phase = cost.Decode
	}
	l := loadOf(&c.batch)
	for _, s := range c.pace.spans {
		if s.to == s.from+1 {
			a := c.pace.ahead[s.from]
			c.costs.Observe(a.op, a.of, s.took)
			continue
		}
		// Ranks meet at gathers and cuts only: what they did between is parted as it was predicted.
		var all time.Duration
		for _, a := range c.pace.ahead[s.from:s.to] {
			all += c.costs.Op(phase, a.op, l) / time.Duration(a.of)
		}
		for _, a := range c.pace.ahead[s.from:s.to] {
			share := float64(c.costs.Op(phase, a.op, l)/time.Duration(a.of)) / float64(max(all, 1))
			c.costs.Observe(a.op, a.of, time.Duration(share*float64(s.took)))
		}
	}
	c.costs.Learn(phase, l)
	if c.gap > 0 {
		c.costs.ObserveBetween(c.gap)
	}
}
