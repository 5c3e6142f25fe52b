package pool

import (
	"errors"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// errLeft unwinds a worker that finds out that its team continued without it.
var errLeft = errors.New("the worker was left out")

// Bits of Pool.pending above the number of workers that are in the run.
const (
	pendingMask = 1<<32 - 1
	runOpen     = 1 << 32 // workers may join and leave the run
	runFinished = 1 << 33 // a worker reached the end
)

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

// RunTolerant is Pool.RunTolerant with the leader as one of the workers.
func (l *Leader) RunTolerant(fn func(w *Worker)) { l.run(fn, true) }

// Resumed returns the step at which a worker rejoins a run that it was left out of. ok is false if
// it takes part from the start.
func (w *Worker) Resumed() (step int, ok bool) { return w.step, w.step >= 0 }

// Private reports whether the chunk that Next gave last must be computed into the worker's private
// buffer, between Offer and Commit.
func (w *Worker) Private() bool { return w.tolerant && w.private }

// Offer begins the part of a chunk that others may reclaim: until Commit the worker writes only to
// its private buffer.
func (w *Worker) Offer() {
	self := &w.team.membership.members[w.id]
	self.since.Store(int64(w.since))
	self.word.Store(w.at(placeOffered) | w.chunk)
	w.offered++
	w.pool.losses.strike(w)
}

// Commit ends that part: from now on the worker alone writes the results of the chunk. If another
// worker has reclaimed the chunk, Commit does not return but unwinds the run, and the worker
// rejoins its team later.
func (w *Worker) Commit() {
	w.pool.losses.strike(w)
	self := &w.team.membership.members[w.id]
	if !self.word.CompareAndSwap(w.at(placeOffered)|w.chunk, w.at(placeBusy)) {
		panic(errLeft)
	}
}

// began notes that a worker got a chunk in preemption-tolerant mode.
func (w *Worker) began(chunk uint64) {
	now := w.ceased()
	w.chunk, w.since = chunk, now
	w.private = now < w.riskUntil || w.pool.losses != nil
}

// ceased notes how long the chunk before took, if there was one in the phase.
func (w *Worker) ceased() time.Duration {
	now := w.pool.now()
	if w.timing != w.tag {
		w.timing, w.longest = w.tag, 0
	} else if w.since > 0 {
		w.note(now, now-w.since)
	}
	w.since = 0
	return now
}

// note records the time of a chunk.
func (w *Worker) note(now, took time.Duration) {
	w.longest = max(w.longest, took)
	if took > lossGap {
		w.suspect(now, 0)
	}
}

// patience returns how long another worker may hold a chunk. It doubles with each chunk of the
// phase that was reclaimed, so that chunks that take longer than expected are finished instead of
// being reclaimed repeatedly.
func (w *Worker) patience(taken int) time.Duration {
	patience := unknownPatience
	if w.longest > 0 { // it had one in this phase
		patience = min(max(2*w.longest, leastPatience), mostPatience)
	}
	return patience << min(taken, mostDoubled)
}

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
	if p.team.idOf[w.index] < 0 || w.ended == p.runs {
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

// stay makes sure that no other worker leaves this one out from now on. It reports false if one
// has: whatever failed here, its result is not needed.
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

// CheckRisk starts preemption-tolerant mode if the run allows it and a worker is at risk. The
// caller knows that all workers have met, and none calls Met before it returns. Step next begins
// after it.
func (w *Worker) CheckRisk(next int) {
	if p := w.pool; next >= 0 && p.mayTolerate && (p.risk.Load() > 0 || p.losses != nil) {
		w.startTolerant(next)
	}
}

// startTolerant starts preemption-tolerant mode during a run, at the barrier in which all other
// workers wait. Step next begins after it.
func (w *Worker) startTolerant(next int) {
	p := w.pool
	w.team.membership.raise(w.tag>>localBits, next)
	for _, index := range w.team.active {
		p.workers[index].tolerant = true // which is all that a worker knows by that comes late from the barrier
	}
	p.tolerant = true
	p.pending.Or(runOpen)
}

// enterTolerant passes the barrier at which preemption-tolerant mode started.
func (w *Worker) enterTolerant() {
	w.pool.losses.strike(w)
	phase := w.tag >> localBits
	w.list = 0
	if !w.team.membership.members[w.id].word.CompareAndSwap(placeWaiting.in(phase-1), placeBusy.in(phase)) {
		panic(errLeft)
	}
}

// Tolerant reports whether the team is in preemption-tolerant mode in the current phase.
func (w *Worker) Tolerant() bool { return w.tolerant }
