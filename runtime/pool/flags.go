package pool

import (
	"sync/atomic"

	"sandwich/runtime/pool/internal/sys"
)

// Flags are numbered words that workers raise and wait on: synchronization between those that share
// data, where a barrier would make everybody wait. A flag holds the highest number it was raised to
// and is never lowered, so that it needs no reset between uses; numbers made from Worker.Run are
// higher in every later run, also after one that a panic cut short.
type Flags struct{ list []flag }

type flag struct {
	at atomic.Uint64
	sys.Event
}

// NewFlags makes n flags, all at 0. Like a Grouping they stay with the pool. Not to be called from
// inside a Run or Lead.
func (p *Pool) NewFlags(n int) *Flags {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &Flags{list: make([]flag, n)}
	p.flags = append(p.flags, f)
	return f
}

// Raise sets flag i to the given number, which is higher than any before it, and releases those who
// wait for it. What the caller wrote before is visible to them.
func (f *Flags) Raise(i int, to uint64) {
	e := &f.list[i]
	e.at.Store(to)
	e.Advance()
}

// Wait returns when flag i has been raised to the given number or beyond. It waits as a barrier
// does: it spins up to the pool's limit, then sleeps, and it unwinds the run when another worker
// failed.
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
