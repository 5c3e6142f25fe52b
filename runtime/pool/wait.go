package pool

import (
	"sync/atomic"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

const (
	hotSpins   = 64                     // reads of the word before the first read of the clock
	clockSpins = 8                      // reads of the word between two reads of the clock
	stallGap   = 20 * time.Microsecond  // gap between two reads of the clock that shows a lost CPU
	minBackoff = 500 * time.Microsecond // first period without spinning of a worker that lost its CPU
	maxBackoff = 8 * time.Millisecond
)

// waiter is the wait policy of one thread: spin up to a limit, then sleep in the kernel. A thread
// that loses its CPU while it spins sleeps at once for some time: another thread needs that CPU,
// perhaps the worker that it waits for, and the scheduler prefers a thread that slept. The loss
// shows as a gap in the clock and is confirmed by the count of involuntary context switches. Only
// the owner uses the plain fields.
type waiter struct {
	pool    *Pool
	limit   atomic.Int64 // longest spin in nanoseconds; SetActive lowers it to 0 while the worker is not needed
	spin    time.Duration
	pu      atomic.Int64 // that a worker is bound to, or would be
	nivcsw  int64        // involuntary context switches at the last check
	delay   sys.Delay
	steal   sys.Steal
	backing bool // in a period without spinning, until calm
	calm    time.Duration
	backoff time.Duration // length of the current or last period

	parked    time.Duration // when it last went to sleep
	waitedCPU time.Duration // value of delay at the last check
	noted     time.Duration // time of the last call of lost
	losing    time.Duration // losses that have not drained away
	riskUntil time.Duration // until when it is at risk

	// Published by Worker.publish.
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

// preempted checks whether this thread lost its CPU to another one since the last check. If so, it
// starts a period without spinning, twice as long as the one before if that ended just now.
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
