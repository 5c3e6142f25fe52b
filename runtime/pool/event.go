package pool

import "sync/atomic"

// event is a word that threads wait on. Its value only ever counts up; a waiter waits for it to
// differ from the value it saw. Who changes v calls wake afterwards. Because both sides use
// sequentially consistent atomics (sleepers is raised before v is looked at again, v is changed
// before sleepers is looked at) no wake-up is lost.
type event struct {
	v        atomic.Uint32
	sleepers atomic.Int32
	parking
}

// sleep blocks while v equals old. It may return early; callers look at v again.
func (e *event) sleep(old uint32) {
	e.sleepers.Add(1)
	e.block(&e.v, old)
	e.sleepers.Add(-1)
}

// wake releases every sleeper. It costs one load when there is none.
func (e *event) wake() {
	if e.sleepers.Load() > 0 {
		e.unblock(&e.v)
	}
}

// advance changes the value and releases every sleeper.
func (e *event) advance() {
	e.v.Add(1)
	e.wake()
}
