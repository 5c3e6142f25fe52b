package answer

import (
	"context"
	"slices"
	"sync"

	"sandwich/runtime/api"
)

// gate is a weighted semaphore with two priorities: reactive requests come first, then proactive
// ones, each class in order of arrival. Methods may be called concurrently.
type gate struct {
	mu      sync.Mutex
	free    int64
	waiting [2][]*waiter // by class
	// reclaim frees units that no request uses and returns how many, 0 if there are none. It is
	// called with the lock held and may be nil.
	reclaim func() int64
}

// waiter is a request that waits for units.
type waiter struct {
	units   int64
	granted chan struct{}
}

// acquire takes units, waiting for them until ctx ends. units must not exceed the total.
func (g *gate) acquire(ctx context.Context, class api.Class, units int64) error {
	g.mu.Lock()
	if g.first(class) && g.fits(units) {
		g.free -= units
		g.mu.Unlock()
		return nil
	}
	w := &waiter{units, make(chan struct{})}
	g.waiting[class] = append(g.waiting[class], w)
	g.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting[class], w); i >= 0 {
		g.waiting[class] = slices.Delete(g.waiting[class], i, i+1)
	} else {
		g.free += units // granted concurrently
	}
	g.grant()
	return ctx.Err()
}

// first reports whether a new request of a class would be the first in the queue.
func (g *gate) first(class api.Class) bool {
	return len(g.waiting[api.Reactive]) == 0 && (class == api.Reactive || len(g.waiting[api.Proactive]) == 0)
}

// fits reports whether enough units are free, after reclaiming unused ones if necessary.
func (g *gate) fits(units int64) bool {
	for g.free < units {
		if g.reclaim == nil {
			return false
		}
		got := g.reclaim()
		if got == 0 {
			return false
		}
		g.free += got
	}
	return true
}

// release returns units.
func (g *gate) release(units int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += units
	g.grant()
}

// retry grants requests for which units can be reclaimed now.
func (g *gate) retry() { g.release(0) }

// grant gives units to waiting requests in order.
func (g *gate) grant() {
	for class := range g.waiting {
		for len(g.waiting[class]) > 0 {
			w := g.waiting[class][0]
			if !g.fits(w.units) {
				return
			}
			g.free -= w.units
			g.waiting[class] = g.waiting[class][1:]
			close(w.granted)
		}
	}
}
