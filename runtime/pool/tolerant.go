package pool

import (
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// strike is called where a worker may lose its CPU.
func (l *losses) strike(w *Worker) {
	if l == nil {
		return
	}
	w.strikes++
	x := mix(l.seed ^ uint64(w.index)<<48 ^ w.strikes)
	if x&(1<<32-1) < l.part {
		sys.Nap(1 + time.Duration(mix(x)%uint64(l.max)))
	}
}

// at returns the worker's word for a place in its phase, at its list.
func (w *Worker) at(s place) uint64 { return s.in(w.tag>>localBits) | uint64(w.list)<<listShift }

// Resumed returns the step at which a worker rejoins a run that it was left out of. ok is false if
// it takes part from the start.
func (w *Worker) Resumed() (step int, ok bool) { return w.step, w.step >= 0 }

// Private reports whether the chunk that Next gave last must be computed into the worker's private
// buffer, between Offer and Commit.
func (w *Worker) Private() bool { return w.tolerant && w.private }

// Offer begins the part of a chunk that others may reclaim: until Commit the worker writes only to
// its private buffer.
func (w *Worker) Offer() {
	self := &w.team.membership.members[w.id]
	self.since.Store(int64(w.since))
	self.word.Store(w.at(placeOffered) | w.chunk)
	w.offered++
	w.pool.losses.strike(w)
}

// Commit ends that part: from now on the worker alone writes the results of the chunk. If another
// worker has reclaimed the chunk, Commit does not return but unwinds the run, and the worker
// rejoins its team later.
func (w *Worker) Commit() {
	w.pool.losses.strike(w)
	self := &w.team.membership.members[w.id]
	if !self.word.CompareAndSwap(w.at(placeOffered)|w.chunk, w.at(placeBusy)) {
		panic(errLeft)
	}
}

// began notes that a worker got a chunk in preemption-tolerant mode.
func (w *Worker) began(chunk uint64) {
	now := w.ceased()
	w.chunk, w.since = chunk, now
	w.private = now < w.riskUntil || w.pool.losses != nil
}

// ceased notes how long the chunk before took, if there was one in the phase.
func (w *Worker) ceased() time.Duration {
	now := w.pool.now()
	if w.timing != w.tag {
		w.timing, w.longest = w.tag, 0
	} else if w.since > 0 {
		w.note(now, now-w.since)
	}
	w.since = 0
	return now
}

// note records the time of a chunk.
func (w *Worker) note(now, took time.Duration) {
	w.longest = max(w.longest, took)
	if took > lossGap {
		w.suspect(now, 0)
	}
}

// patience returns how long another worker may hold a chunk. It doubles with each chunk of the
// phase that was reclaimed, so that chunks that take longer than expected are finished instead of
// being reclaimed repeatedly.
func (w *Worker) patience(taken int) time.Duration {
	patience := unknownPatience
	if w.longest > 0 { // it had one in this phase
		patience = min(max(2*w.longest, minPatience), maxPatience)
	}
	return patience << min(taken, maxDoubled)
}

// Tolerant reports whether the team is in preemption-tolerant mode in the current phase.
func (w *Worker) Tolerant() bool { return w.tolerant }
