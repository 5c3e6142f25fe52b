package exec

import "sandwich/runtime/exec/tp"

// Gate decides after every step of a forward, before step `next` begins, whether the forward halts
// there. One worker calls it: worker 0, or another one in preemption-tolerant mode. It must not
// block, because all workers wait for it.
type Gate interface{ Passed(next int) (halt bool) }

// everyStep halts after every step.
type everyStep struct{}

func (everyStep) Passed(int) bool { return true }

// ask asks the gate after a step, once, before the workers meet. The forward halts before step
// `at`, which is later than the next one if the ranks continue until a gather.
func (e *Executor) ask(next, at int) {
	f := &e.forward
	if next <= f.asked {
		return
	}
	f.asked = next
	e.throughput.Update(next, len(e.ranks) == 1)
	if f.gate == nil || !f.gate.Passed(next) {
		return
	}
	if e.bufs.locate(at).op < f.end {
		f.next = at
	}
	f.halt.Store(int64(at))
}

// askNext is ask for the last worker that arrives after a step.
func (e *Executor) askNext(next int) { e.ask(next, next) }

// halted reports, after all workers have met before a step, whether the forward halts there.
func (e *Executor) halted(next int) bool { return e.forward.halt.Load() == int64(next) }

// scope describes which workers wait for each other after a step.
type scope uint8

const (
	scopeAll  scope = iota // all workers; the forward may halt there
	scopeRank              // the workers of a rank
	scopeSum               // all workers, inside the gather that follows, by the flags of its sum
)

// scopeAfter returns the barrier scope after a step of an op. more: another step follows.
func (e *Executor) scopeAfter(p position, more bool) scope {
	switch o := &e.ops[p.op]; {
	case o.RankBarrier && more && !e.bufs.joint(p.op):
		return scopeRank
	case o.FlagSync && o.Mode != tp.Gather && p.step.Last():
		return scopeSum
	}
	return scopeAll
}

// HaltsAfter reports whether a forward without divided ops can halt after op i: it cannot inside a
// parallel subgraph.
func (e *Executor) HaltsAfter(i int) bool { return e.ops[i].HaltsAfter() }

// Steps returns the number of steps of a forward on the buffers in use. Run returns it when the
// forward is done.
func (e *Executor) Steps() (n int) {
	if len(e.bufs.steps) == 0 {
		return len(e.ops)
	}
	for i := range e.ops {
		n += e.bufs.stepsOf(i)
	}
	return n
}
