package sys

import "sync/atomic"

// Event is a word that threads wait on. Its value only grows; a waiter waits for it to differ from
// the value that it read. A thread that changes the value wakes the sleepers afterwards. Both sides
// use sequentially consistent atomics: a sleeper is counted before it reads the value again, and
// the value changes before the count is read, so no wake-up is lost.
type Event struct {
	v        atomic.Uint32
	sleepers atomic.Int32
	parking
}

// Load returns the value.
func (e *Event) Load() uint32 { return e.v.Load() }

// Sleep blocks while the value equals old. It may return early.
func (e *Event) Sleep(old uint32) {
	e.sleepers.Add(1)
	e.block(&e.v, old)
	e.sleepers.Add(-1)
}

// Wake releases every sleeper. Without sleepers it costs one load.
func (e *Event) Wake() {
	if e.sleepers.Load() > 0 {
		e.unblock(&e.v)
	}
}

// Advance changes the value and releases every sleeper.
func (e *Event) Advance() {
	e.v.Add(1)
	e.Wake()
}
