package pool

import (
	"time"

	"sandwich/runtime/pool/internal/sys"
)

const (
	// Preemption-tolerant mode costs a few percent, so it starts only after a worker has lost more
	// than that for some time: losses drain away at one part in lossDrain of the time, and the rest
	// must reach maxLoss.
	lossGap   = 500 * time.Microsecond // length of a chunk or a wait after which the kernel is asked
	lossDrain = 16
	maxLoss   = 10 * time.Millisecond
	riskSpan  = time.Second // how long a worker is at risk after its losses reached maxLoss

	leaveAfter = 20 * time.Microsecond // how long a barrier waits for workers without chunks

	// Bounds of the time for which another worker may hold a chunk: twice the longest chunk of the
	// waiting worker in the phase.
	minPatience     = 30 * time.Microsecond
	maxPatience     = 10 * time.Millisecond
	maxDoubled      = 12
	unknownPatience = 200 * time.Microsecond

	tolerantSpin = 200 * time.Microsecond // after which a worker in preemption-tolerant mode sleeps briefly
	nap0         = 20 * time.Microsecond
)

const (
	hotSpins   = 64                     // reads of the word before the first read of the clock
	clockSpins = 8                      // reads of the word between two reads of the clock
	stallGap   = 20 * time.Microsecond  // gap between two reads of the clock that shows a lost CPU
	minBackoff = 500 * time.Microsecond // first period without spinning of a worker that lost its CPU
	maxBackoff = 8 * time.Millisecond
)

// suspect asks the kernel how long the thread waited for its CPU since the last check, and how much
// time a hypervisor took from the CPU, which no wait shows. Without an account of waits, the gap in
// the clock counts instead.
func (t *waiter) suspect(now, gap time.Duration) {
	t.steal.Follow(int(t.pu.Load()))
	stolen := t.steal.Since(now)
	if waited, ok := t.delay.Read(); ok {
		gap, t.waitedCPU = waited-t.waitedCPU+stolen, waited
	}
	t.lost(now, max(gap, stolen))
}

// interrupted reports whether the kernel gave the thread's CPU to another one since the last check.
func (t *waiter) interrupted() bool {
	n := sys.InvoluntarySwitches()
	rose := n > t.nivcsw
	t.nivcsw = n
	return rose
}

// lost adds the time for which the thread lost its CPU since the last call. A part of the elapsed
// time drains away, for what a machine takes by itself; beyond maxLoss the thread is at risk.
func (t *waiter) lost(now, gap time.Duration) {
	if t.spin == 0 {
		return // more workers than PUs
	}
	t.losing = max(0, t.losing+gap-(now-t.noted)/lossDrain)
	t.noted = now
	if t.losing > maxLoss {
		t.losing = maxLoss
		t.riskUntil = now + riskSpan
		t.pool.risk.Store(int64(t.riskUntil))
	}
}

// watch is the wait in preemption-tolerant mode: it spins, and sleeps briefly after some time.
type watch struct {
	w          *waiter
	began, now time.Duration
	looks      int
}

func (t *waiter) watch() watch { return newWatch(t) }

func newWatch(t *waiter) watch {
	now := t.pool.now()
	return watch{w: t, began: now, now: now}
}

// waited returns how long it has waited.
func (s *watch) waited() time.Duration { return s.now - s.began }

// look is called between two checks of the condition.
func (s *watch) look() {
	sys.Pause(1)
	if s.looks++; s.looks%clockSpins != 0 {
		return
	}
	s.now = s.w.pool.now()
	if s.waited() > tolerantSpin || s.w.spin == 0 {
		s.w.parks++
		sys.Nap(nap0)
		s.now = s.w.pool.now()
	}
}

func (t *waiter) init(p *Pool, pu int, spin time.Duration) {
	t.pool, t.spin = p, spin
	t.pu.Store(int64(pu))
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
