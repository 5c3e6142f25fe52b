package pool

import (
	"errors"
	"runtime/debug"
)

// ID returns the number of the worker among the active ones, 0 to N-1, in the order given to
// SetActive.
func (w *Worker) ID() int { return w.id }

// newPanic describes the result of recover; nil means that the goroutine is ending.
func (w *Worker) newPanic(value any) *Panic {
	if value == nil {
		value = errors.New("the function ended its goroutine with runtime.Goexit")
	}
	return &Panic{Value: value, Worker: w.index, PU: w.PU(), Stack: debug.Stack()}
}

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

// stats returns the counts of the worker as of the end of its last run.
func (w *Worker) stats() WorkerStats {
	return WorkerStats{w.seen.barriers.Load(), w.seen.parks.Load(), w.seen.backoffs.Load(), w.seen.taken.Load(),
		w.seen.left.Load(), w.seen.offered.Load()}
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
