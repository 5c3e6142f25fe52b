package pool

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// command is what a worker is asked to do when its door rings.
type command int32

const (
	cmdNone command = iota
	cmdRun
	cmdJoin
	cmdLead
	cmdExit
)

// Worker is one thread of the pool as the function of a run sees it. It is valid only inside that
// function and only on the goroutine it was given to.
type Worker struct {
	waiter
	index int
	class int
	slow  float64       // Options.Slow
	lap   time.Duration // when the present chunk began, where slow; 0 between loops

	team   *team
	id     int
	layout *layout
	thread atomic.Int64 // number of the system's thread
	group  *Group
	rank   int
	tag    uint64 // barrier phase, see Counter
	step   int    // that it came back with to the run, or -1
	skip   int    // barriers in that step that the team has passed
	joined bool   // it is a member of a guarded team; the pool may be in another run already
	list   uint8  // of whose chunks it may have one, on guard
	ended  uint64 // the last run whose end it reached
	doubts uint64 // how many of Pool.doubts it has looked into

	// On guard, of the chunk at hand: its number and when it was given; whether it is computed
	// apart; and of the phase it is of, the longest so far.
	chunk   uint64
	since   time.Duration
	apart   bool
	timing  uint64
	longest time.Duration
	strikes uint64 // places at which it might have been made to lose its CPU

	run     uint64        // number of the present run
	started time.Duration // when the present run began here, if Pool.timed

	_        [cacheLine]byte
	commands sys.Event // counts the commands given to this worker
	cmd      atomic.Int32
	_        [cacheLine]byte

	seen struct{ barriers, parks, backoffs, taken, left, offered atomic.Uint64 } // what Stats reads
}

// ID is the worker's number among the active ones, 0 to N-1, in the order given to SetActive.
func (w *Worker) ID() int { return w.id }

// N is the number of active workers.
func (w *Worker) N() int { return len(w.team.active) }

// Team are the indices of the active workers, by ID. They are not to be changed.
func (w *Worker) Team() []int { return w.team.active }

// Index is the worker's number in the pool, whoever is active.
func (w *Worker) Index() int { return w.index }

// PU returns the processing unit the worker is bound to.
func (w *Worker) PU() int { return int(w.pu.Load()) }

// Groups are those of the grouping in use, by ID. They are not to be changed.
func (w *Worker) Groups() []*Group { return w.layout.groups }

// Class is the opaque class given in Options.
func (w *Worker) Class() int { return w.class }

// Group is the worker's group under the grouping in use.
func (w *Worker) Group() *Group { return w.group }

// Run is the number of the present run: the same for all its workers, and higher than that of any
// earlier one.
func (w *Worker) Run() uint64 { return w.run }

// GroupRank is the worker's number inside its group, 0 to Group().Size()-1.
func (w *Worker) GroupRank() int { return w.rank }

// Barrier returns when every active worker has called it, or is left out of an elastic run.
func (w *Worker) Barrier() { w.BarrierTo(-1, nil) }

// BarrierTo is Barrier where a step of an elastic run begins behind it, with that number: who comes
// back begins with it. Of a guarded team the last to arrive calls last, unless it is nil, before
// anybody goes on; where somebody comes back meanwhile, another one does so again.
func (w *Worker) BarrierTo(next int, last func(next int)) {
	if w.joined {
		if w.skip > 0 {
			w.skip--
		} else {
			w.team.guard.pass(w, next, last)
		}
		return
	}
	w.team.barrier.pass(w, w.id, next)
	w.Met()
}

// Met tells that all active workers are known to have come to this point of the run, by a barrier
// or by flags. Counters may then be used again.
func (w *Worker) Met() {
	w.tag = nextGlobal(w.tag)
	if w.joined { // the guard was raised here
		w.enterGuard()
	}
	if d := w.pool.doubts.Load(); d != w.doubts {
		w.doubts = d
		w.suspect(w.pool.now(), 0)
	}
}

// LocalBarrier returns when every active worker of the group has called it, or every one of a
// guarded team.
func (w *Worker) LocalBarrier() {
	if w.joined {
		w.Barrier()
		return
	}
	w.group.barrier.pass(w, w.rank, -1)
	w.tag = nextLocal(w.tag)
}

// Use changes to another grouping for the rest of the run. All active workers do so between the
// same two global barriers; it costs no synchronization of its own, because each grouping has
// barriers of its own.
func (w *Worker) Use(g *Grouping) {
	w.layout = &w.team.layouts[g.id]
	w.group = w.layout.groups[w.layout.of[w.id]]
	w.rank = int(w.layout.rank[w.id])
}

// ring gives the worker a command.
func (w *Worker) ring(c command) {
	w.cmd.Store(int32(c))
	w.commands.Advance()
}

func (w *Worker) start(ready chan<- error) { sys.OwnThread(func() { w.loop(ready) }) }

// loop is the worker's goroutine, locked to its thread. The thread is not unlocked at the end, so
// that the system thread with its changed affinity ends too.
func (w *Worker) loop(ready chan<- error) {
	w.thread.Store(int64(sys.ThreadID()))
	if w.pool.pinned {
		ready <- sys.Pin(0, w.PU()) // a worker that failed waits for cmdExit like the others
	} else {
		ready <- nil
	}
	w.serve(0)
}

// serve answers the door until told to exit. at is the door's value of the last command answered.
func (w *Worker) serve(at uint32) {
	w.nivcsw = sys.InvoluntarySwitches()
	w.delay.Open()
	w.waitedCPU, _ = w.delay.Read()
	if w.pool.pinned {
		w.steal.Open(sys.ProcStat, w.PU())
	}
	ended := false
	defer func() {
		w.delay.Close()
		w.steal.Close()
		if !ended { // the function of a run ended the goroutine with runtime.Goexit; another one takes the place
			go w.replace(at)
		}
	}()
	for {
		w.wait(&w.commands, at)
		at = w.commands.Load()
		switch command(w.cmd.Swap(int32(cmdNone))) { // none: it was taken with an earlier ring
		case cmdExit:
			ended = true
			w.pool.exited.Done()
			return
		case cmdRun:
			w.enter()
			w.execute(w.pool.fn)
		case cmdJoin:
			w.takePart()
		case cmdLead:
			w.lead()
		}
	}
}

// replace takes over the door of a worker whose goroutine ended.
func (w *Worker) replace(at uint32) {
	sys.OwnThread(func() {
		w.thread.Store(int64(sys.ThreadID()))
		if w.pool.pinned {
			// It succeeded for this PU before. If the cpuset shrank since, the worker runs wherever
			// the system lets it.
			_ = sys.Pin(0, w.PU())
		}
		w.serve(at)
	})
}

// enter takes on the present team, grouping and phase.
func (w *Worker) enter() {
	p := w.pool
	w.team = p.team
	w.id = int(p.team.idOf[w.index])
	w.tag, w.run, w.step, w.skip, w.joined = p.tag, p.runs, -1, 0, false
	w.Use(p.grouping)
	if p.timed {
		w.started = p.now()
	}
}

// publish copies the counters to where Stats may read them.
func (w *Worker) publish() {
	w.seen.barriers.Store(w.barriers)
	w.seen.parks.Store(w.parks)
	w.seen.backoffs.Store(w.backoffs)
	w.seen.taken.Store(w.taken)
	w.seen.left.Store(w.left)
	w.seen.offered.Store(w.offered)
}
