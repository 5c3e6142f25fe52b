package pool

import (
	"slices"
	"time"
)

// pass enters the barrier as member and returns when all have entered. It panics with errAborted to
// unwind the run if a worker failed: that worker advances the event without having arrived. If next
// is not negative and a worker is at risk, the last worker that arrives starts preemption-tolerant
// mode.
func (b *barrier) pass(w *Worker, member, next int) {
	old := b.epoch.Load()
	if w.pool.aborting.Load() { // after the load: a later abort advances past old
		panic(errAborted)
	}
	w.barriers++
	if b.arrive(member) {
		w.CheckRisk(next)
		b.epoch.Advance()
		return
	}
	parks := w.parks
	w.wait(&b.epoch, old)
	if w.pool.aborting.Load() {
		panic(errAborted)
	}
	w.doubt(parks)
}

// NewFlags makes n flags, all at 0. They stay with the pool until DropFlags. It must not be called
// inside a Run or Lead.
func (p *Pool) NewFlags(n int) *Flags {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &Flags{list: make([]flag, n)}
	p.flags = append(p.flags, f)
	return f
}

// DropFlags forgets flags that no run uses any more. It must not be called inside a Run or Lead.
func (p *Pool) DropFlags(list ...*Flags) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flags = slices.DeleteFunc(p.flags, func(f *Flags) bool { return slices.Contains(list, f) })
}

// Wait returns when flag i has been raised to the given number or beyond. Like a barrier it spins
// up to the pool's limit, then sleeps, and it unwinds the run if another worker failed.
func (f *Flags) Wait(w *Worker, i int, number uint64) {
	e := &f.list[i]
	parks := w.parks
	for e.at.Load() < number {
		old := e.Load()
		if w.pool.aborting.Load() { // after the load: a later abort advances past old
			panic(errAborted)
		}
		if e.at.Load() >= number { // after the load: a later Raise advances past old
			return
		}
		w.wait(&e.Event, old)
	}
	w.doubt(parks)
}

// doubt notes that a wait took so long that a worker must have lost its CPU. parks is the number of
// sleeps before the wait.
func (w *Worker) doubt(parks uint64) {
	if w.parks != parks && w.pool.now()-w.parked > lossGap {
		w.pool.doubts.Add(1)
	}
}

// open makes the list of a counter the one of which the worker may have chunks, before it asks for
// one.
func (w *Worker) open(c *Counter) {
	if w.list != c.List {
		w.list = c.List
		w.team.membership.members[w.id].word.Store(w.at(placeBusy))
	}
}

// pass is Worker.BarrierTo in preemption-tolerant mode.
func (g *membership) pass(w *Worker, next int, last func(int)) {
	if w.pool.aborting.Load() {
		panic(errAborted)
	}
	w.barriers++
	phase, self := w.tag>>localBits, &g.members[w.id]
	self.word.Store(placeWaiting.in(phase))
	g.count(phase, 0, 1, next, last)
	g.await(w, phase, next, last)
	w.pool.losses.strike(w)
	if !self.word.CompareAndSwap(placeWaiting.in(phase), placeBusy.in(phase+1)) {
		panic(errLeft)
	}
	w.tag, w.list = nextGlobal(w.tag), 0
}

// await returns when the phase is over. Members that hold no chunk of it and do not arrive are left
// out.
func (g *membership) await(w *Worker, phase uint64, next int, last func(int)) {
	for t := w.watch(); g.phase() == phase&phaseMask; t.look() {
		if w.pool.aborting.Load() {
			panic(errAborted)
		}
		if t.waited() < leaveAfter {
			continue
		}
		for i := range g.members {
			m := &g.members[i]
			word := m.word.Load()
			if idle(word, phase) && w.pool.leave(m, word, phase) {
				g.count(phase, 1, 0, next, last)
			}
		}
	}
}

// leave marks a member with the given word as out. It reports false if the word has changed.
func (p *Pool) leave(m *member, word, phase uint64) bool {
	p.away.Add(1)
	if !m.word.CompareAndSwap(word, placeOut.in(phase)) {
		p.away.Add(-1)
		return false
	}
	p.pending.Add(-1)
	return true
}

// last is called by a worker that found no chunk left in its list. It waits until no other worker
// holds one. If a worker has held a chunk for too long, last reclaims it, and the caller computes
// it; ok reports that.
func (g *membership) last(w *Worker) (chunk int, ok bool) {
	phase, self := w.tag>>localBits, &g.members[w.id]
	spent, busy := w.at(placeSpent), w.at(placeBusy)
	self.word.Store(spent)
	w.pool.losses.strike(w)
	for t := w.watch(); ; t.look() {
		if w.pool.aborting.Load() {
			panic(errAborted)
		}
		held, late := g.held(w, phase, &t)
		if late == nil {
			if held {
				continue
			}
			if !self.word.CompareAndSwap(spent, busy) {
				panic(errLeft)
			}
			return 0, false
		}
		if !self.word.CompareAndSwap(spent, busy) { // first: the worker that reclaims must not be left out meanwhile
			panic(errLeft)
		}
		if word := late.word.Load(); word&^chunkMask == w.at(placeOffered) && w.pool.leave(late, word, phase) {
			g.count(phase, 1, 0, -1, nil)
			g.taken(phase)
			w.taken++
			return int(word & chunkMask), true
		}
		self.word.Store(spent)
	}
}

// held reports whether other workers hold chunks of the worker's list, and returns one that has
// held its chunk for too long, or nil.
func (g *membership) held(w *Worker, phase uint64, t *watch) (held bool, late *member) {
	for i := range g.members {
		if i == w.id {
			continue
		}
		m := &g.members[i]
		word := m.word.Load()
		if phaseOf(word) != phase&phaseMask || listOf(word) != uint64(w.list) {
			continue
		}
		switch placeOf(word) {
		case placeBusy:
			held = true
		case placeOffered:
			held = true
			if t.now-time.Duration(m.since.Load()) > w.patience(g.tries(phase)) {
				return true, m
			}
		}
	}
	return held, nil
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
		p.worker(index).tolerant = true // Met reads it after the barrier, where the worker may be descheduled
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

// Barrier returns when every active worker has called it, or was left out of a preemption-tolerant
// run.
func (w *Worker) Barrier() { w.BarrierTo(-1, nil) }

// BarrierTo is Barrier before step next of a run that may be preemption-tolerant: a worker that
// rejoins starts with that step. In preemption-tolerant mode the last worker that arrives calls
// last, unless it is nil, before any worker continues; if a worker rejoins meanwhile, another one
// may call it again.
func (w *Worker) BarrierTo(next int, last func(next int)) {
	if w.tolerant {
		if w.skip > 0 {
			w.skip--
		} else {
			w.team.membership.pass(w, next, last)
		}
		return
	}
	w.team.barrier.pass(w, w.id, next)
	w.Met()
}

// Met tells the worker that all active workers have reached this point of the run, by a barrier or
// by flags. Counters may be used again after it.
func (w *Worker) Met() {
	w.tag = nextGlobal(w.tag)
	if w.tolerant { // preemption-tolerant mode started here
		w.enterTolerant()
	}
	if d := w.pool.doubts.Load(); d != w.doubts {
		w.doubts = d
		w.suspect(w.pool.now(), 0)
	}
}

// LocalBarrier returns when every active worker of the group has called it; in preemption-tolerant
// mode, every active worker of the team.
func (w *Worker) LocalBarrier() {
	if w.tolerant {
		w.Barrier()
		return
	}
	w.group.barrier.pass(w, w.rank, -1)
	w.tag = nextLocal(w.tag)
}
