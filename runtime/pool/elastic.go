package pool

import (
	"errors"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// errLeft unwinds a worker that came back to find that the team goes on without it.
var errLeft = errors.New("the worker was left out")

// Bits of Pool.pending above the number of workers that are in the run.
const (
	pendingMask = 1<<32 - 1
	runOpen     = 1 << 32 // workers may join the run, and leave it
	runFinished = 1 << 33 // somebody came to its end
)

// RunElastic is Run of a function that can do without workers: while some have lost their CPUs of
// late, the team is on its guard, goes on without who is lost, and takes back what that one had.
// What the function promises for it:
//
//   - all work is in loops of Next, and none is given to a worker by its number;
//   - while Guarded says so, all workers walk together: every loop is everybody's, local barriers
//     are those of the team, and all pass the same number of them. What groups would do beside each
//     other is then loops of one phase over counters of unlike lists;
//   - it passes barriers by BarrierTo where a step begins that a worker can come back to, and after
//     Resumed it begins with that step: of what came before in it, Next gives nothing and barriers
//     are passed at once;
//   - where Apart says so, a chunk may be computed into the worker's own memory between Offer and
//     Commit. Meanwhile nothing else is read that may change under a reader.
//
// While nobody is at risk it is Run.
func (p *Pool) RunElastic(fn func(w *Worker)) { p.run(fn, true) }

// RunElastic is Pool.RunElastic with the leader as one of the workers.
func (l *Leader) RunElastic(fn func(w *Worker)) { l.run(fn, true) }

// Resumed returns the step that a worker comes back with to a run that it was left out of; ok is
// false where it takes part from the beginning.
func (w *Worker) Resumed() (step int, ok bool) { return w.step, w.step >= 0 }

// Apart says whether the chunk that Next gave last is to be computed into memory of the worker's
// own, between Offer and Commit.
func (w *Worker) Apart() bool { return w.joined && w.apart }

// Offer begins the part of a chunk that others may take back: until Commit the worker writes to its
// own memory alone.
func (w *Worker) Offer() {
	self := &w.team.guard.members[w.id]
	self.since.Store(int64(w.since))
	self.word.Store(w.at(placeOffered) | w.chunk)
	w.offered++
	w.pool.losses.strike(w)
}

// Commit ends it: the worker alone now writes the chunk's results where they belong. Where somebody
// else has taken the chunk, it does not return but unwinds the run, to come back where the team is.
func (w *Worker) Commit() {
	w.pool.losses.strike(w)
	self := &w.team.guard.members[w.id]
	if !self.word.CompareAndSwap(w.at(placeOffered)|w.chunk, w.at(placeBusy)) {
		panic(errLeft)
	}
}

// began notes that a guarded worker was given a chunk.
func (w *Worker) began(chunk uint64) {
	now := w.ceased()
	w.chunk, w.since = chunk, now
	w.apart = now < w.riskUntil || w.pool.losses != nil
}

// ceased notes what the chunk before took, if there was one in the phase.
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

// note takes what a chunk took into account.
func (w *Worker) note(now, took time.Duration) {
	w.longest = max(w.longest, took)
	if took > lossGap {
		w.suspect(now, 0)
	}
}

// patience is how long a chunk of somebody else may take, where so many of the phase were taken
// back already: twice as long with each, so that chunks which are simply longer than was thought
// come to their ends, instead of being taken to and fro.
func (w *Worker) patience(taken int) time.Duration {
	patience := unknownPatience
	if w.longest > 0 { // it had one in this phase
		patience = min(max(2*w.longest, leastPatience), mostPatience)
	}
	return patience << min(taken, mostDoubled)
}

// join makes the worker a member of the run that is open, in the phase that it is in. It reports
// false where no run is open, or none that needs it.
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
	g := &w.team.guard
	self := &g.members[w.id]
	for t := w.watch(); ; t.look() {
		if p.aborting.Load() {
			w.finish(false)
			return false
		}
		word := g.word.Load()
		if word>>guardBits&guardMask == 0 { // who left the worker out has not yet counted it
			continue
		}
		phase := word >> guardShift
		at := &g.at[phase&1]
		number, first := at.number.Load(), at.first.Load()
		self.word.Store(placeBusy.in(phase))
		if g.word.CompareAndSwap(word, word-outOne) {
			w.tag, w.step, w.skip, w.joined = phase<<localBits, int(number), int(phase-first), true
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

// stay makes sure that nobody leaves the worker out any more, and reports false where somebody has:
// whatever went wrong with it then, nobody needs what it was at.
func (w *Worker) stay() bool {
	for w.joined {
		m := &w.team.guard.members[w.id]
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

// cameBack is for a worker that was left out: from here on it touches nothing of the run.
func (w *Worker) cameBack() {
	w.left++
	w.publish()
	w.suspect(w.pool.now(), 0)
	w.pool.away.Add(-1)
}

// finish counts the worker out of the run, which it may have come to the end of.
func (w *Worker) finish(end bool) {
	p := w.pool
	if end && p.pending.Load()&runOpen != 0 {
		p.pending.Or(runFinished)
	}
	if p.pending.Add(-1)&pendingMask == 0 {
		p.done.Advance()
	}
}

// over reports whether the run has ended, and closes it to whoever comes now.
func (p *Pool) over() bool {
	n := p.pending.Load()
	if n&runOpen == 0 {
		return n == 0
	}
	return n == runOpen|runFinished && p.pending.CompareAndSwap(n, 0)
}

// await returns when the run has ended. A guarded one ends without workers that are lost behind its
// last barrier.
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

// endWithout waits a little, and leaves out who came to the last barrier and not beyond.
func (p *Pool) endWithout(t *waiter) {
	g := &p.team.guard
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

// Gather returns when no worker is at work for a run that has ended without it: before memory is
// freed that such a worker may still read.
func (p *Pool) Gather() {
	for p.away.Load() > 0 {
		sys.Nap(nap0)
	}
}

// Heed puts the team of an elastic run on its guard if a worker is at risk, where the caller knows
// that everybody has met, and lets nobody call Met before it. Step next begins behind that.
func (w *Worker) Heed(next int) {
	if p := w.pool; next >= 0 && p.elastic && (p.risk.Load() > 0 || p.losses != nil) {
		w.raiseGuard(next)
	}
}

// raiseGuard puts the team on its guard in the midst of a run, at the barrier that everybody else
// waits in. Step next begins behind it.
func (w *Worker) raiseGuard(next int) {
	p := w.pool
	w.team.guard.raise(w.tag>>localBits, next)
	for _, index := range w.team.active {
		p.workers[index].joined = true // which is all that a worker knows by that comes late from the barrier
	}
	p.guarded = true
	p.pending.Or(runOpen)
}

// enterGuard is passing the barrier at which the team was put on its guard.
func (w *Worker) enterGuard() {
	w.pool.losses.strike(w)
	phase := w.tag >> localBits
	w.list = 0
	if !w.team.guard.members[w.id].word.CompareAndSwap(placeWaiting.in(phase-1), placeBusy.in(phase)) {
		panic(errLeft)
	}
}

// Guarded says whether the team goes on without workers that are lost, in the present phase.
func (w *Worker) Guarded() bool { return w.joined }
