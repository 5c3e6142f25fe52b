package pool

import (
	"sync/atomic"
	"time"
)

// A worker that is at risk of losing its CPU, because it lost it just now, computes into memory of
// its own and commits what it has once. Who finds that all chunks of a phase are given out, and
// that such a worker has had one for longer than it should, takes the chunk back and leaves the
// worker out of the team until it comes back. That is one word a worker, which only
// compare-and-swap moves: either it commits or somebody else has the chunk, never both. What a
// worker writes late, it writes to its own memory.

// place is where a member of a guarded team is in a phase.
type place uint64

const (
	placeOut     place = iota // not with the team: nobody waits for it
	placeBusy                 // in the phase, and to be waited for
	placeSpent                // found no chunk left, and holds none
	placeWaiting              // arrived at the barrier behind the phase
	placeOffered              // computes the list's chunk of that number into its own memory
)

const (
	placeShift = 61
	listBits   = 8
	listShift  = placeShift - listBits
	phaseBits  = listShift - chunkBits
	phaseMask  = 1<<phaseBits - 1
)

// in is the member's word for a place in a phase, at its first list of chunks.
func (s place) in(phase uint64) uint64 { return uint64(s)<<placeShift | (phase&phaseMask)<<chunkBits }

func placeOf(word uint64) place  { return place(word >> placeShift) }
func listOf(word uint64) uint64  { return word >> listShift & (1<<listBits - 1) }
func phaseOf(word uint64) uint64 { return word >> chunkBits & phaseMask }

// at is the worker's word for a place in its phase, at its list.
func (w *Worker) at(s place) uint64 { return s.in(w.tag>>localBits) | uint64(w.list)<<listShift }

// open makes the counter's the list that the worker may have chunks of, before it asks for one.
func (w *Worker) open(c *Counter) {
	if w.list != c.List {
		w.list = c.List
		w.team.guard.members[w.id].word.Store(w.at(placeBusy))
	}
}

// member is what others see of a worker, and may do to it.
type member struct {
	word  atomic.Uint64 // place, list, phase, chunk
	since atomic.Int64  // when an offered chunk was begun
	_     [cacheLine - 16]byte
}

// guard is the barrier of a team that goes on without workers that were lost. Its word holds the
// phase that runs, and how many members are out and have arrived; together they are all there are
// when the phase is over.
type guard struct {
	_       [cacheLine]byte
	word    atomic.Uint64
	_       [cacheLine - 8]byte
	at      [2]guardStep  // by the phase's parity
	takes   atomic.Uint64 // the phase of the last one, and how many there were of it
	members []member
}

// takesBits count what is taken back of a phase.
const takesBits = 8

// taken notes that a chunk of the phase was taken back.
func (g *guard) taken(phase uint64) {
	for {
		old := g.takes.Load()
		next := phase&phaseMask<<takesBits | 1
		if old>>takesBits == phase&phaseMask {
			next = min(old+1, next|(1<<takesBits-1))
		}
		if g.takes.CompareAndSwap(old, next) {
			return
		}
	}
}

// tries is how many chunks of the phase were taken back.
func (g *guard) tries(phase uint64) int {
	if word := g.takes.Load(); word>>takesBits == phase&phaseMask {
		return int(word & (1<<takesBits - 1))
	}
	return 0
}

// guardStep is the step of the run that a phase is of, and the phase that the step begins with.
type guardStep struct {
	number atomic.Int64
	first  atomic.Uint64
}

func (s *guardStep) set(number int64, first uint64) {
	s.number.Store(number)
	s.first.Store(first)
}

const (
	guardBits  = 11
	guardMask  = 1<<guardBits - 1
	guardShift = 2 * guardBits
	mostGuards = guardMask // workers of a team that may be guarded
	outOne     = 1 << guardBits
)

func (g *guard) phase() uint64 { return g.word.Load() >> guardShift & phaseMask }

// begin lays the guard out for a run that starts in a phase: nobody is there yet, and everybody
// joins as soon as it comes.
func (g *guard) begin(phase uint64) {
	for i := range g.members {
		g.members[i].word.Store(placeOut.in(phase))
	}
	g.at[phase&1].set(-1, phase)
	g.word.Store(phase<<guardShift | uint64(len(g.members))<<guardBits)
}

// raise puts a team on its guard in the midst of a run, called by the last member to arrive at the
// barrier behind a phase while all others wait there. Step next begins behind it.
func (g *guard) raise(phase uint64, next int) {
	for i := range g.members {
		g.members[i].word.Store(placeWaiting.in(phase))
	}
	g.at[(phase+1)&1].set(int64(next), phase+1)
	g.word.Store((phase + 1) << guardShift)
}

// count notes that so many more members are out and have arrived, and ends the phase where that is
// all of them. next is the step that begins behind it; -1: it goes on.
// Before that, last is called.
func (g *guard) count(phase, out, arrived uint64, next int, last func(int)) {
	for {
		word := g.word.Load()
		if word>>guardShift&phaseMask != phase&phaseMask {
			return
		}
		o, a := word>>guardBits&guardMask+out, word&guardMask+arrived
		to := phase<<guardShift | o<<guardBits | a
		if int(o+a) == len(g.members) && a > 0 {
			to = (phase+1)<<guardShift | o<<guardBits
			if last != nil {
				last(next)
			}
			if next >= 0 {
				g.at[(phase+1)&1].set(int64(next), phase+1)
			} else {
				was := &g.at[phase&1]
				g.at[(phase+1)&1].set(was.number.Load(), was.first.Load())
			}
		}
		if g.word.CompareAndSwap(word, to) {
			return
		}
	}
}

// pass is Worker.BarrierTo of a guarded team.
func (g *guard) pass(w *Worker, next int, last func(int)) {
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

// await returns when the phase is over. Members that hold nothing of it and do not come are left
// out.
func (g *guard) await(w *Worker, phase uint64, next int, last func(int)) {
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

// idle tells whether a member that has not arrived behind the phase holds nothing of it.
func idle(word, phase uint64) bool {
	return placeOf(word) == placeSpent && phaseOf(word) == phase&phaseMask || word == placeWaiting.in(phase-1)
}

// leave makes a member whose word is as given one that is out, and reports whether it still was as
// given.
func (p *Pool) leave(m *member, word, phase uint64) bool {
	p.away.Add(1)
	if !m.word.CompareAndSwap(word, placeOut.in(phase)) {
		p.away.Add(-1)
		return false
	}
	p.pending.Add(-1)
	return true
}

// last is for a worker that found no chunk left of its list: it waits until nobody holds one.
// Where somebody has been at one for too long, it takes it back, which ok says: its caller computes
// it.
func (g *guard) last(w *Worker) (chunk int, ok bool) {
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
		if !self.word.CompareAndSwap(spent, busy) { // before: who takes must not be left out meanwhile
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

// held tells whether others hold chunks of the worker's list, and which of them has had one for too
// long.
func (g *guard) held(w *Worker, phase uint64, t *watch) (held bool, late *member) {
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
