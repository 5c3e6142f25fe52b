// Package arbiter lets several engines share the same cores: at any time at most one of them runs a
// forward or a part of a load.
//
// An engine acquires the cores before each forward and releases them afterwards. A forward may also
// release them between two ops, when Preempted says that another client is to run. Clients with
// reactive work run first. Among clients of the same class, the one that has used the cores for the
// shortest time runs first, and a client yields to the others after slice. A client with proactive
// work that waits while reactive clients use the cores runs for guaranteedSlice after they have
// used them for guaranteedAfter.
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

// Client uses the cores of an arbiter. Acquire and Release must not be called concurrently.
type Client struct {
	arbiter *Arbiter
	used    time.Duration // time with the cores; at least that of the others when it became active
}

// NewClient returns a further client.
func (a *Arbiter) NewClient() *Client { return &Client{arbiter: a} }

// Acquire waits for the cores, for work of a class.
func (c *Client) Acquire(class api.Class) {
	if t := c.ask(class); t != nil {
		<-t.granted
	}
}

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

// ask takes the cores if they are free and returns nil, or puts the client in the queue.
func (c *Client) ask(class api.Class) *turn {
	a := c.arbiter
	a.mu.Lock()
	defer a.mu.Unlock()
	c.used = max(c.used, a.virtual) // an idle client saves up no time
	if a.holder == nil {
		a.grant(c, class, false)
		return nil
	}
	t := &turn{client: c, class: class, granted: make(chan struct{})}
	a.waiting = append(a.waiting, t)
	a.queued.Store(int32(len(a.waiting)))
	return t
}

// Release gives the cores to the next client. The caller must hold them.
func (c *Client) Release() {
	a := c.arbiter
	a.mu.Lock()
	defer a.mu.Unlock()
	held := a.now() - a.since
	c.used += held
	if a.class == api.Reactive {
		for _, t := range a.waiting {
			t.passed += held
		}
	}
	a.holder = nil
	if i := a.next(0); i >= 0 {
		t := a.waiting[i]
		a.waiting = slices.Delete(a.waiting, i, i+1)
		a.queued.Store(int32(len(a.waiting)))
		a.grant(t.client, t.class, t.isDue(0))
		close(t.granted)
	}
}

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

// grant gives the cores to a client.
func (a *Arbiter) grant(c *Client, class api.Class, due bool) {
	a.holder, a.class, a.due, a.since = c, class, due, a.now()
	a.virtual = max(a.virtual, c.used)
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
