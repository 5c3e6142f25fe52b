// Package arbiter lets several engines share the same cores: at any time at most one of them runs a
// forward or a part of a load.
//
// An engine acquires the cores before each forward and releases them afterwards. A forward may also
// release them between two ops, when Preempted says that another client is to run. Clients with
// reactive work run first. Among clients of the same class, the one that has used the cores for the
// shortest time runs first, and a client yields to the others after slice. A client with proactive
// work that waits while reactive clients use the cores runs for guaranteedSlice after they have
// used them for guaranteedAfter. A client that is about to run another forward keeps the cores
// unless a client that would run before it waits; see Pause.
package arbiter

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/api"
)

const (
	slice           = 10 * time.Millisecond
	guaranteedAfter = 20 * time.Millisecond
	guaranteedSlice = 2 * time.Millisecond
)

// Arbiter grants the cores to one client at a time. See New.
type Arbiter struct {
	now    func() time.Duration // monotonic
	queued atomic.Int32         // clients in waiting

	mu      sync.Mutex
	holder  *Client // nil: the cores are free
	class   api.Class
	due     bool // the holder is a proactive client that was guaranteed the cores
	paused  bool // the holder runs nothing; a client that would run before it takes the cores
	since   time.Duration
	waiting []*turn
	virtual time.Duration // used of the last client that got the cores
}

// turn is a client that waits for the cores.
type turn struct {
	client  *Client
	class   api.Class
	passed  time.Duration // for which reactive clients used the cores meanwhile
	granted chan struct{}
}

// New returns an arbiter whose cores are free.
func New() *Arbiter {
	began := time.Now()
	return &Arbiter{now: func() time.Duration { return time.Since(began) }}
}

// Client uses the cores of an arbiter. Its methods must not be called concurrently, but for
// Preempted.
type Client struct {
	arbiter *Arbiter
	used    time.Duration // time with the cores; at least that of the others when it became active
}

// NewClient returns a further client.
func (a *Arbiter) NewClient() *Client { return &Client{arbiter: a} }

// Acquire waits for the cores, for work of a class. The client may have paused.
func (c *Client) Acquire(class api.Class) { <-c.ask(class).granted }

// Background is a client for background work next to forwards of other clients, all of which is
// proactive.
type Background struct{ client *Client }

// NewBackground returns a further client.
func (a *Arbiter) NewBackground() Background { return Background{a.NewClient()} }

// Acquire waits for the cores.
func (b Background) Acquire() { b.client.Acquire(api.Proactive) }

// Release gives the cores to the next client.
func (b Background) Release() { b.client.Release() }

// Preempted is Client.Preempted.
func (b Background) Preempted() bool { return b.client.Preempted() }

// ask puts the client in the queue, and grants the cores if nothing runs on them.
func (c *Client) ask(class api.Class) *turn {
	a := c.arbiter
	a.mu.Lock()
	defer a.mu.Unlock()
	c.used = max(c.used, a.virtual) // an idle client saves up no time
	t := &turn{client: c, class: class, granted: make(chan struct{})}
	if a.paused && (a.holder == c || t.before(a.ofHolder(), 0)) {
		a.free()
	}
	a.waiting = append(a.waiting, t)
	a.grantNext()
	return t
}

// Release gives the cores to the next client. It does nothing if the client does not have them.
func (c *Client) Release() {
	a := c.arbiter
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holder == c {
		a.free()
		a.grantNext()
	}
}

// Pause is like Release for a client that soon calls Acquire again, or Release if it has nothing
// left to run. Until then, only a client that would run before it if both waited gets the cores, so
// that other work does not delay its next forward.
func (c *Client) Pause() {
	a := c.arbiter
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	i := a.next(0)
	a.paused = i < 0 || !a.waiting[i].before(a.ofHolder(), 0)
	if !a.paused {
		a.free()
		a.grantNext()
	}
}

// ofHolder returns the turn of the holder, as if it waited.
func (a *Arbiter) ofHolder() *turn { return &turn{client: a.holder, class: a.class} }

// Preempted reports whether the holder is to release the cores because another client waits.
// Workers of the holder may call it concurrently.
func (c *Client) Preempted() bool {
	a := c.arbiter
	if a.queued.Load() == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	held := a.now() - a.since
	var reactive time.Duration // for which a reactive client has used the cores since the last grant
	if a.class == api.Reactive {
		reactive = held
	}
	i := a.next(reactive)
	if i < 0 {
		return false
	}
	switch t := a.waiting[i]; {
	case t.class < a.class && a.due:
		return held >= guaranteedSlice
	case t.class != a.class: // it is reactive, or due
		return t.class < a.class || t.isDue(reactive)
	}
	return held >= slice
}

// settle counts the time for which the holder had the cores.
func (a *Arbiter) settle() {
	now := a.now()
	held := now - a.since
	a.since = now
	a.holder.used += held
	if a.class == api.Reactive {
		for _, t := range a.waiting {
			t.passed += held
		}
	}
}

// free takes the cores from the holder.
func (a *Arbiter) free() {
	a.settle()
	a.holder, a.paused = nil, false
}

// grantNext gives the cores to the client that runs next, if they are free and one waits.
func (a *Arbiter) grantNext() {
	if i := a.next(0); a.holder == nil && i >= 0 {
		t := a.waiting[i]
		a.waiting = slices.Delete(a.waiting, i, i+1)
		a.holder, a.class, a.due, a.since = t.client, t.class, t.isDue(0), a.now()
		a.virtual = max(a.virtual, t.client.used)
		close(t.granted)
	}
	a.queued.Store(int32(len(a.waiting)))
}

// next returns the index of the waiting client that runs next, -1 without one, after reactive
// clients have used the cores for a further time.
func (a *Arbiter) next(further time.Duration) int {
	best := -1
	for i, t := range a.waiting {
		if best < 0 || t.before(a.waiting[best], further) {
			best = i
		}
	}
	return best
}

// before reports whether t runs before another client.
func (t *turn) before(o *turn, further time.Duration) bool {
	if a, b := t.isDue(further), o.isDue(further); a != b {
		return a
	}
	if t.class != o.class {
		return t.class < o.class
	}
	return t.client.used < o.client.used
}

// isDue reports whether a proactive client has waited for as long as it must.
func (t *turn) isDue(further time.Duration) bool {
	return t.class == api.Proactive && t.passed+further >= guaranteedAfter
}
