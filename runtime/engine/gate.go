package engine

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload"
)

// margin estimates the 95th percentile of the ratio of a step's measured to its predicted time.
// Predictions are multiplied by it before ops are cut, since a hypervisor or a noisy neighbor can
// make single steps several times as long.
type margin float64

// One step above the margin raises it about as much as nineteen steps below lower it. maxMargin
// limits the effect of noisy neighbors on the number of steps.
const (
	marginUp, marginDown = 1.1, 0.995
	maxMargin            = 4
)

// note updates the margin with a measured and a predicted time.
func (m *margin) note(took, predicted time.Duration) {
	*m = max(*m, 1)
	if float64(took) > float64(*m)*float64(predicted) {
		*m *= marginUp
	} else {
		*m *= marginDown
	}
	*m = min(max(*m, 1), maxMargin)
}

// steps returns the number of steps into which an op with a predicted time is cut. The zero margin
// counts as 1.
func (m margin) steps(takes, bound time.Duration) int {
	return int(min(float64(max(m, 1))*float64(takes)/float64(bound)+1-1e-9, maxCuts))
}

// maxCuts is the limit of steps of one op.
const maxCuts = 512

// forwardGate decides after each step of a forward whether the forward halts: if stop is set, or if
// the next step would exceed the quantum. It records the duration of steps for the table of costs.
// One worker calls it; stop may be set by any goroutine.
type forwardGate struct {
	stop    atomic.Bool
	passed  atomic.Uint64 // steps of all forwards
	quantum time.Duration // 0: unlimited
	steps   []plannedStep // by step
	spans   []stepTime
	began   time.Time
	last    time.Time
	at      int             // index of the running step
	turns   Cores           // has the cores during the forward; nil: the engine always has them
	yields  bool            // the forward halted because another engine waits for the cores
	upload  *offload.Upload // copies keys and values to the device; nil: none
}

// Cores grants the cores to an engine, such as *arbiter.Client. The engine holds them during each
// forward, which halts soon after Preempted returns true. Between two forwards it calls Pause and
// then Acquire, or Release when nothing is left to compute. Workers call Preempted concurrently.
type Cores interface {
	Acquire(class api.Class)
	Pause()
	Release()
	Preempted() bool
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
	p.last, p.at, p.yields = p.began, at, false
}

// resume continues after a pause before a step, which does not count as time of the forward. It
// returns the length of the pause.
func (p *forwardGate) resume(at int) (pause time.Duration) {
	now := time.Now()
	pause = now.Sub(p.last)
	p.began = p.began.Add(pause)
	p.last, p.at, p.yields = now, at, false
	return pause
}

// Passed implements exec.Gate.
func (p *forwardGate) Passed(next int) (halt bool) {
	p.passed.Add(1)
	now := time.Now()
	p.spans = append(p.spans, stepTime{p.at, next, now.Sub(p.last)})
	p.at, p.last = next, now
	if p.upload != nil && next > 0 { // other workers may not have completed the last step
		p.upload.Reached(p.steps[next-1].op)
	}
	if p.stop.Load() {
		return true
	}
	if p.turns != nil && p.turns.Preempted() {
		p.yields = true
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

// takeCores waits for the cores and for the workers, which other engines may share.
func (c *lane) takeCores() {
	if c.e.turns != nil {
		c.e.turns.Acquire(c.class)
	}
	c.e.leader.Take()
}

// giveCores ends what takeCores began.
func (c *lane) giveCores() {
	c.e.leader.Give()
	c.e.rest()
}

// pause ends what takeCores began. The engine calls takeCores again soon, or rest.
func (c *lane) pause() {
	c.e.leader.Give()
	if c.e.turns != nil {
		c.e.turns.Pause()
	}
}

// rest gives the cores to other engines, if this one has them.
func (e *Engine) rest() {
	if e.turns != nil {
		e.turns.Release()
	}
}

// withCores runs f while the engine has the cores.
func (c *lane) withCores(f func()) {
	c.takeCores()
	defer c.giveCores()
	f()
}
