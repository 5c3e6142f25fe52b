package pool

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// command is what a worker must do.
type command int32

const (
	cmdNone command = iota
	cmdRun
	cmdJoin
	cmdLead
	cmdExit
)

// Worker is a thread of the pool as the function of a run sees it. It is valid only inside that
// function and on its goroutine.
type Worker struct {
	waiter
	index int
	class int
	slow  float64       // Options.Slow
	lap   time.Duration // start of the chunk if slow; 0 between loops

	team     *team
	id       int
	layout   *layout
	thread   atomic.Int64 // system's number of the thread
	group    *Group
	rank     int
	tag      uint64 // barrier phase, see Counter
	step     int    // at which it rejoined the run, or -1
	skip     int    // barriers of that step that the team has passed already
	tolerant bool   // member of a team in preemption-tolerant mode; the pool may be in another run already
	list     uint8  // list of which it may have a chunk in preemption-tolerant mode
	ended    uint64 // last run whose end it reached
	doubts   uint64 // value of Pool.doubts at the last check

	// In preemption-tolerant mode: number and start of the chunk at hand, whether it is private,
	// and the phase and the longest chunk in it.
	chunk   uint64
	since   time.Duration
	private bool
	timing  uint64
	longest time.Duration
	strikes uint64 // points of simulated losses

	run     uint64        // number of the run
	started time.Duration // start of the run on this worker, if Pool.timed

	_        [cacheLine]byte
	commands sys.Event // counts the commands to this worker
	cmd      atomic.Int32
	_        [cacheLine]byte

	seen struct{ barriers, parks, backoffs, taken, left, offered atomic.Uint64 } // read by Stats
}

// ID returns the number of the worker among the active ones, 0 to N-1, in the order given to
// SetActive.
func (w *Worker) ID() int { return w.id }

// N returns the number of active workers.
func (w *Worker) N() int { return len(w.team.active) }

// Team returns the indices of the active workers by ID. The caller must not change them.
func (w *Worker) Team() []int { return w.team.active }

// Index returns the number of the worker in the pool, active or not.
func (w *Worker) Index() int { return w.index }

// PU returns the processing unit the worker is bound to.
func (w *Worker) PU() int { return int(w.pu.Load()) }

// Groups returns the groups of the grouping in use by ID. The caller must not change them.
func (w *Worker) Groups() []*Group { return w.layout.groups }

// Class returns the class given in Options.
func (w *Worker) Class() int { return w.class }

// Group returns the group of the worker under the grouping in use.
func (w *Worker) Group() *Group { return w.group }

// Run returns the number of the run: equal for all its workers, and higher than that of any earlier
// run.
func (w *Worker) Run() uint64 { return w.run }

// GroupRank returns the number of the worker inside its group, 0 to Group().Size()-1.
func (w *Worker) GroupRank() int { return w.rank }

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

// Use changes to another grouping for the rest of the run. All active workers call it between the
// same two global barriers. It does not synchronize, because each grouping has barriers of its own.
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

// loop is the goroutine of the worker, locked to its thread. It does not unlock the thread, so that
// the system thread with its changed affinity ends too.
func (w *Worker) loop(ready chan<- error) {
	w.thread.Store(int64(sys.ThreadID()))
	if w.pool.pinned {
		ready <- sys.Pin(0, w.PU()) // a worker that failed waits for cmdExit like the others
	} else {
		ready <- nil
	}
	w.serve(0)
}

// serve executes commands until told to exit. at is the value of the event of the last command.
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
		if !ended { // the function of a run called runtime.Goexit; another goroutine replaces this one
			go w.replace(at)
		}
	}()
	for {
		w.wait(&w.commands, at)
		at = w.commands.Load()
		switch command(w.cmd.Swap(int32(cmdNone))) { // none: taken with an earlier command
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

// replace takes over from a worker whose goroutine ended.
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

// enter takes over team, grouping and phase of the current run.
func (w *Worker) enter() {
	p := w.pool
	w.team = p.team
	w.id = int(p.team.idOf[w.index])
	w.tag, w.run, w.step, w.skip, w.tolerant = p.tag, p.runs, -1, 0, false
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
