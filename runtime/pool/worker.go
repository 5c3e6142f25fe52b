package pool

import (
	"runtime"
	"sync/atomic"
	"time"
)

// command is what a worker is asked to do when its door rings.
type command int

const (
	cmdRun command = iota
	cmdLead
	cmdExit
)

// Worker is one thread of the pool as the function of a run sees it. It is valid only inside that
// function and only on the goroutine it was given to.
type Worker struct {
	waiter
	index int
	pu    int
	class int
	slow  float64       // Options.Slow
	lap   time.Duration // when the present chunk began, where slow; 0 between loops

	team    *team
	id      int
	layout  *layout
	thread  atomic.Int64 // number of the system's thread
	group   *Group
	rank    int
	tag     uint64        // barrier phase, see Counter
	run     uint64        // number of the present run
	started time.Duration // when the present run began here, if Pool.timed

	_    [cacheLine]byte
	door event // counts the commands given to this worker
	cmd  command
	_    [cacheLine]byte

	seen struct{ barriers, parks, backoffs atomic.Uint64 } // what Stats reads
}

// ID is the worker's number among the active ones, 0 to N-1, in the order given to SetActive.
func (w *Worker) ID() int { return w.id }

// N is the number of active workers.
func (w *Worker) N() int { return len(w.team.active) }

// Team are the indices of the active workers, by ID. They are not to be changed.
func (w *Worker) Team() []int { return w.team.active }

// Index is the worker's number in the pool, whoever is active.
func (w *Worker) Index() int { return w.index }

// PU is the processing unit the worker is bound to.
func (w *Worker) PU() int { return w.pu }

// Class is the opaque class given in Options.
func (w *Worker) Class() int { return w.class }

// Group is the worker's group under the grouping in use.
func (w *Worker) Group() *Group { return w.group }

// Run is the number of the present run: the same for all its workers, and higher than that of any
// earlier one.
func (w *Worker) Run() uint64 { return w.run }

// GroupRank is the worker's number inside its group, 0 to Group().Size()-1.
func (w *Worker) GroupRank() int { return w.rank }

// Barrier returns when every active worker has called it.
func (w *Worker) Barrier() {
	w.team.barrier.pass(w, w.id)
	w.tag = nextGlobal(w.tag)
}

// LocalBarrier returns when every active worker of the group has called it.
func (w *Worker) LocalBarrier() {
	w.group.barrier.pass(w, w.rank)
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
	w.cmd = c
	w.door.advance()
}

// start gives the worker a thread of its own, never the main one: that thread's affinity is what
// /proc and other programs take for the process's, it could not end with the worker, and a later
// reading of the machine would believe that only the worker's PU is allowed.
func (w *Worker) start(ready chan<- error) {
	runtime.LockOSThread()
	if !onMainThread() {
		w.loop(ready)
		return
	}
	elsewhere := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(elsewhere)
		w.loop(ready)
	}()
	<-elsewhere // the main thread is held here until the other goroutine has another
	runtime.UnlockOSThread()
}

// loop is the worker's goroutine, locked to its thread. The thread is not unlocked at the end, so
// that the system thread with its changed affinity ends too.
func (w *Worker) loop(ready chan<- error) {
	w.thread.Store(int64(threadID()))
	if w.pool.pinned {
		ready <- pinThread(0, w.pu) // a worker that failed waits for cmdExit like the others
	} else {
		ready <- nil
	}
	w.serve(0)
}

// serve answers the door until told to exit. at is the door's value of the last command answered.
func (w *Worker) serve(at uint32) {
	w.nivcsw = involuntarySwitches()
	ended := false
	defer func() {
		if !ended { // the function of a run ended the goroutine with runtime.Goexit; another one takes the place
			go w.replace(at)
		}
	}()
	for {
		w.wait(&w.door, at)
		at = w.door.v.Load()
		switch w.cmd {
		case cmdExit:
			ended = true
			w.pool.exited.Done()
			return
		case cmdRun:
			w.enter()
			w.execute(w.pool.fn)
		case cmdLead:
			w.lead()
		}
	}
}

// replace takes over the door of a worker whose goroutine ended.
func (w *Worker) replace(at uint32) {
	runtime.LockOSThread()
	w.thread.Store(int64(threadID()))
	if w.pool.pinned {
		// It succeeded for this PU before. If the cpuset shrank since, the worker runs wherever the
		// system lets it.
		_ = pinThread(0, w.pu)
	}
	w.serve(at)
}

// enter takes on the present team, grouping and phase.
func (w *Worker) enter() {
	p := w.pool
	w.team = p.team
	w.id = int(p.team.idOf[w.index])
	w.tag, w.run = p.tag, p.runs
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
}
