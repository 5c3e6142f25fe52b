package pool

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

const (
	hotSpins   = 64                     // looks at the word before the first look at the clock
	clockSpins = 8                      // looks between two looks at the clock
	stallGap   = 20 * time.Microsecond  // two looks at the clock this far apart: somebody else had the CPU
	minBackoff = 500 * time.Microsecond // how long a worker that lost its CPU sleeps instead of spinning, at first
	maxBackoff = 8 * time.Millisecond
)

// waiter is the wait policy of one thread: spin up to a limit, then sleep in the kernel. A thread
// that loses its CPU while it spins, seen as a gap in the clock and confirmed by the kernel's count
// of involuntary context switches, sleeps at once for the next while: somebody needs that CPU,
// perhaps the very worker being waited for, and a thread that slept is scheduled before one that
// burned its share. Only its owner touches the plain fields.
type waiter struct {
	pool    *Pool
	limit   atomic.Int64 // longest spin in nanoseconds; SetActive lowers it to 0 while the worker is not needed
	spin    time.Duration
	pu      atomic.Int64 // that a worker is bound to, or would be
	nivcsw  int64        // involuntary context switches at the last look
	delay   sys.Delay
	steal   sys.Steal
	backing bool // no spinning before calm
	calm    time.Duration
	backoff time.Duration // length of the present or last such period

	parked    time.Duration // when it last went to sleep
	waitedCPU time.Duration // what delay said at the last look
	noted     time.Duration // when it last noted what it lost of its CPU
	losing    time.Duration // and what of that has not drained away
	riskUntil time.Duration // it may do so again

	// published by Worker.publish
	barriers, parks, backoffs, taken, left, offered uint64
}

func (t *waiter) init(p *Pool, spin time.Duration) {
	t.pool, t.spin = p, spin
	t.limit.Store(int64(spin))
}

// wait returns when e differs from old.
func (t *waiter) wait(e *sys.Event, old uint32) {
	for {
		if limit := time.Duration(t.limit.Load()); limit > 0 && t.spinOn(e, old, limit) {
			return
		}
		if e.Load() != old {
			return
		}
		t.parks++
		t.parked = t.pool.now()
		e.Sleep(old)
		if e.Load() != old {
			return
		}
	}
}

// spinOn reports whether e changed within the limit. The loop calls functions, so the garbage
// collector can stop a spinning worker as fast as any other goroutine.
func (t *waiter) spinOn(e *sys.Event, old uint32, limit time.Duration) bool {
	if t.backing {
		if t.pool.now() < t.calm {
			return false
		}
		t.backing = false
	}
	for range hotSpins {
		if e.Load() != old {
			return true
		}
		sys.Pause(1)
	}
	start := t.pool.now()
	last := start
	for {
		for range clockSpins {
			if e.Load() != old {
				return true
			}
			sys.Pause(1)
		}
		now := t.pool.now()
		if now-last > stallGap && t.preempted(now, now-last) {
			return e.Load() != old
		}
		if now-start > limit || now-start > time.Duration(t.limit.Load()) {
			return false
		}
		last = now
	}
}

// preempted asks the kernel whether this thread lost its CPU to another one since the last look
// and, if so, starts a period without spinning, twice as long as the one before if that ended only
// just now.
func (t *waiter) preempted(now, gap time.Duration) bool {
	if !t.interrupted() {
		if gap > lossGap { // no thread of this system had it
			t.suspect(now, 0)
		}
		return false
	}
	if gap > lossGap {
		t.suspect(now, gap)
	}
	if t.backoff > 0 && now-t.calm < 2*maxBackoff {
		t.backoff = min(2*t.backoff, maxBackoff)
	} else {
		t.backoff = minBackoff
	}
	t.backoffs++
	t.backing, t.calm = true, now+t.backoff
	return true
}
