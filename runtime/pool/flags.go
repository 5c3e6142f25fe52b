package pool

import (
	"sync/atomic"

	"sandwich/runtime/pool/internal/sys"
)

// Flags are numbered words that workers raise and wait on: synchronization of the workers that
// share data, without a barrier of all. A flag has the highest number to which it was raised and is
// never lowered, so it needs no reset. Numbers made from Worker.Run are higher in every later run,
// also after one that a panic ended early.
type Flags struct{ list []flag }

type flag struct {
	at atomic.Uint64
	sys.Event
}

// NewFlags makes n flags, all at 0. They stay with the pool. It must not be called inside a Run or
// Lead.
func (p *Pool) NewFlags(n int) *Flags {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &Flags{list: make([]flag, n)}
	p.flags = append(p.flags, f)
	return f
}

// Raise sets flag i to a number that is higher than any before it, and releases the workers that
// wait for it. They see all earlier writes of the caller.
func (f *Flags) Raise(i int, to uint64) {
	e := &f.list[i]
	e.at.Store(to)
	e.Advance()
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

// abort releases every waiter. Pool.aborting is set.
func (f *Flags) abort() {
	for i := range f.list {
		f.list[i].Advance()
	}
}
