package pool

import (
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// Run executes fn on every active worker at once and returns when all have returned. It allocates
// nothing. If fn panics on a worker, the others are released from their barriers, and Run panics
// with a *Panic. It must not be called inside fn or Lead, which would deadlock.
func (p *Pool) Run(fn func(w *Worker)) { p.run(fn, false) }

func (p *Pool) run(fn func(w *Worker), tolerant bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mustBeOpen()
	began := p.now()
	p.dispatch(fn, -1, tolerant)
	p.await(&p.caller)
	if e := p.settle(began); e != nil {
		panic(e)
	}
}

func (p *Pool) mustBeOpen() {
	if p.closed {
		panic(ErrClosed)
	}
}

// dispatch starts fn on the active workers except the one with index self, which takes part by
// itself.
func (p *Pool) dispatch(fn func(*Worker), self int, tolerant bool) {
	p.fn = fn
	p.runs++
	p.mayTolerate = tolerant && len(p.team.active) > 1 && len(p.team.active) <= maxMembers
	p.tolerant = p.mayTolerate && p.atRisk()
	command := cmdRun
	if p.tolerant {
		command = cmdJoin
		p.team.membership.begin(p.tag >> localBits)
		p.pending.Store(runOpen)
	} else {
		p.pending.Store(int64(len(p.team.active)))
	}
	for _, index := range p.team.active {
		if index != self {
			p.worker(index).ring(command)
		}
	}
}

// execute runs fn as this worker's part of the run and counts it as finished however fn ends. A
// worker that was left out rejoins while the run continues.
func (w *Worker) execute(fn func(*Worker)) {
	if w.attempt(fn) {
		w.takePart()
	}
}

// takePart runs the worker's part of a run that workers may join, from the current step.
func (w *Worker) takePart() {
	for w.join() && w.attempt(w.pool.fn) {
	}
}

// fail records why fn did not return and releases the others. value is the result of recover.
func (w *Worker) fail(value any) {
	if value == errAborted {
		return
	}
	w.pool.failure.set(w.newPanic(value))
	w.pool.aborting.Store(true)
	w.team.abort()
	for _, f := range w.pool.flags {
		f.abort()
	}
}

// settle ends the run that began at the given time, after its last worker, and returns the panic
// that ended it early.
func (p *Pool) settle(began time.Duration) *Panic {
	p.fn = nil
	top := p.tag
	if p.tolerant {
		top = p.team.membership.phase() << localBits
		p.timed = false
	} else {
		for _, index := range p.team.active {
			top = max(top, p.worker(index).tag)
		}
	}
	p.tag = nextGlobal(top)
	if p.timed {
		p.timeSwitch(began)
	}
	if !p.aborting.Load() {
		return nil
	}
	p.team.reset()
	p.aborting.Store(false)
	return p.failure.take()
}

// timeSwitch records the first run after a switch: the time of SetActive plus the time from the
// dispatch of the run, which began at the given time, to its start on the last worker.
func (p *Pool) timeSwitch(began time.Duration) {
	p.timed = false
	var last time.Duration
	for _, index := range p.team.active {
		last = max(last, p.worker(index).started-began)
	}
	s := &p.switches
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring[s.timed%switchHistory] = s.span + last
	s.timed++
}

// RunTolerant is Run of a function that can continue without some workers. If workers have recently
// lost their CPUs, the run is in preemption-tolerant mode: the team continues without descheduled
// workers and reclaims their chunks. Otherwise it is Run. The function must meet these conditions:
//
//   - All work is in loops of Next; no work is assigned to a worker by its number.
//   - While Tolerant reports true, all workers run the same loops: local barriers are those of the
//     team, and all workers pass the same number of them. What groups would do at the same time
//     becomes loops of one phase over counters of different lists.
//   - It passes barriers with BarrierTo before steps at which a worker can rejoin, and after
//     Resumed it starts with that step. For the earlier part of the step Next returns nothing and
//     barriers return at once.
//   - If Private reports true, a chunk may be computed into the worker's private buffer between
//     Offer and Commit. Meanwhile the worker reads nothing else that may change.
func (p *Pool) RunTolerant(fn func(w *Worker)) { p.run(fn, true) }

// join makes the worker a member of the run in progress, in its current phase. It reports false if
// no run accepts workers or needs this one.
func (w *Worker) join() bool {
	p := w.pool
	for {
		n := p.pending.Load()
		if n&runOpen == 0 {
			return false
		}
		if p.pending.CompareAndSwap(n, n+1) {
			break
		}
	}
	if p.team.idOf[w.index] < 0 || w.ended == p.runs || w.index == 0 && w != p.first {
		w.finish(false)
		return false
	}
	w.enter()
	g := &w.team.membership
	self := &g.members[w.id]
	for t := w.watch(); ; t.look() {
		if p.aborting.Load() {
			w.finish(false)
			return false
		}
		word := g.word.Load()
		if word>>memberBits&memberMask == 0 { // the worker that left this one out has not counted it yet
			continue
		}
		phase := word >> memberShift
		at := &g.at[phase&1]
		number, first := at.number.Load(), at.first.Load()
		self.word.Store(placeBusy.in(phase))
		if g.word.CompareAndSwap(word, word-outOne) {
			w.tag, w.step, w.skip, w.tolerant = phase<<localBits, int(number), int(phase-first), true
			w.list = 0
			return true
		}
		self.word.Store(placeOut.in(phase))
	}
}

// attempt runs fn until it ends or the worker is left out.
func (w *Worker) attempt(fn func(*Worker)) (left bool) {
	returned := false
	defer func() {
		if !returned {
			value := recover()
			if value == errLeft || !w.stay() {
				left = true
				w.cameBack()
				return
			}
			w.fail(value)
		}
		w.publish()
		w.ended = w.run
		w.finish(true)
	}()
	fn(w)
	returned = true
	return false
}

// stay prevents other workers from excluding this one from now on. It returns false if one already
// has; the result of this worker is then not needed, even after a failure.
func (w *Worker) stay() bool {
	for w.tolerant {
		m := &w.team.membership.members[w.id]
		word := m.word.Load()
		if placeOf(word) == placeOut {
			return false
		}
		if m.word.CompareAndSwap(word, placeBusy.in(phaseOf(word))) {
			break
		}
	}
	return true
}

// cameBack is called by a worker that was left out. From here on it uses nothing of the run.
func (w *Worker) cameBack() {
	w.left++
	w.publish()
	w.suspect(w.pool.now(), 0)
	w.pool.away.Add(-1)
}

// finish counts the worker out of the run. end: it reached the end of the run.
func (w *Worker) finish(end bool) {
	p := w.pool
	if end && p.pending.Load()&runOpen != 0 {
		p.pending.Or(runFinished)
	}
	if p.pending.Add(-1)&pendingMask == 0 {
		p.done.Advance()
	}
}

// over reports whether the run has ended, and closes it to workers that come later.
func (p *Pool) over() bool {
	n := p.pending.Load()
	if n&runOpen == 0 {
		return n == 0
	}
	return n == runOpen|runFinished && p.pending.CompareAndSwap(n, 0)
}

// await returns when the run has ended. In preemption-tolerant mode the run ends without workers
// that are descheduled after its last barrier.
func (p *Pool) await(t *waiter) {
	for {
		old := p.done.Load()
		if p.over() {
			return
		}
		if p.pending.Load()&runOpen == 0 {
			t.wait(&p.done, old)
		} else {
			p.endWithout(t)
		}
	}
}

// endWithout waits a little, and leaves out workers that arrived at the last barrier and did not
// pass it.
func (p *Pool) endWithout(t *waiter) {
	g := &p.team.membership
	for s := newWatch(t); p.pending.Load()&pendingMask != 0 || p.pending.Load()&runFinished == 0; s.look() {
		if s.waited() < leaveAfter || p.pending.Load()&runFinished == 0 {
			continue
		}
		phase := g.phase()
		for i := range g.members {
			m := &g.members[i]
			if word := m.word.Load(); word == placeWaiting.in(phase-1) && p.leave(m, word, phase) {
				g.count(phase, 1, 0, -1, nil)
			}
		}
	}
}

// Gather returns when no worker still works for a run that ended without it. Call it before freeing
// memory that such a worker may read.
func (p *Pool) Gather() {
	for p.away.Load() > 0 {
		sys.Nap(nap0)
	}
}
