package sched

import (
	"math"
	"slices"
	"time"
)

// What is guaranteed to proactive requests, whatever the reactive load: the oldest that waits has
// its first quantum within Config.Aging and one reactive service time from when it was the oldest,
// and who has begun goes on. Prefills share one set of activations, so that the first quantum of
// one waits for the chunk of another; and a full house, for the last token of another. So half of
// Config.Aging before the time both are got out of its way: whoever is there gets the share that
// proactive work has beside reactive decoding between reactive prompts, too, and a place in the
// decode batch; who is due stays beside the full house, and has the next chunk.

// begin notes the first quantum of a proactive request, which is progress.
func (s *Scheduler) begin(r *request) {
	if s.rules.owes && r.class == Proactive && !r.begun {
		r.begun, r.progress, s.turn = true, s.now, s.now
	}
}

// owed says whether r waits for so long that progress is guaranteed to all that are proactive: half
// of Config.Aging as the oldest that has not begun, or all of it since it last made progress.
func (s *Scheduler) owed(r *request) bool {
	switch {
	case !s.rules.owes || s.cfg.Aging < 0 || r.class != Proactive:
		return false
	case r.begun:
		return s.now-r.progress >= s.cfg.Aging
	}
	return s.now-max(r.progress, s.turn) >= s.cfg.Aging/2
}

// turnsInAging is how many chunks of proactive prompts go into Config.Aging where others wait for
// their first quanta, and leastChunk the rows of the shortest: below that a forward takes as long
// for fewer.
const (
	turnsInAging = 8
	leastChunk   = 32
)

// paced notes how long a chunk of a proactive prompt took from its beginning to its end, with all
// that went before it meanwhile: the mean of the last one and of what was noted.
func (s *Scheduler) paced(r *request) {
	if r.class != Proactive || r.rows < leastChunk {
		return
	}
	took := (s.now - r.chunk) / time.Duration(r.rows)
	if s.pace > 0 {
		took = (took + s.pace) / 2
	}
	s.pace = max(took, 1)
}

// passable bounds the rows of a proactive prompt's next chunk, which cannot be given up for another
// once it began, so that where one waits for its first quantum the chunk ends in time at the pace
// of late. Nobody knows that of the first one.
func (s *Scheduler) passable(r *request) int {
	if r.class != Proactive || !s.rules.owes || s.cfg.Aging < 0 || s.cfg.Whole || s.cfg.Texts || !s.contended() ||
		!s.awaited(r) {
		return math.MaxInt
	}
	if s.pace == 0 {
		return 2 * leastChunk
	}
	return max(leastChunk, int(s.cfg.Aging/turnsInAging/s.pace)/leastChunk*leastChunk)
}

// contended says whether reactive requests have been there of late: without them a chunk takes no
// longer than its own time, and the longest is read the fastest.
func (s *Scheduler) contended() bool {
	return s.lives[Reactive] > 0 || s.passed >= 0 && s.now-s.passed < s.cfg.Aging
}

// awaited says whether a proactive request other than r waits for its first quantum.
func (s *Scheduler) awaited(r *request) bool {
	waits := func(o *request) bool { return o != r && o.class == Proactive && !o.begun }
	return slices.ContainsFunc(s.queue[Proactive], waits) || slices.ContainsFunc(s.running, waits)
}

// due says whether the first quantum of r is to come next.
func (s *Scheduler) due(r *request) bool { return !r.begun && s.owed(r) }

// guaranteed says whether progress is.
func (s *Scheduler) guaranteed() bool {
	if q := s.queue[Proactive]; len(q) > 0 && s.owed(q[0]) {
		return true
	}
	for _, r := range s.running {
		if r.pending() > 0 && s.owed(r) {
			return true
		}
	}
	return false
}

// between is what an aged or guaranteed quantum between reactive prompts is spent on, nil and 0 for
// nothing: the prefill of w, or nil and the credit for a decode batch, whichever is the older,
// but the prefill where somebody waits for its set.
func (s *Scheduler) between(w work) (prefill *request, quantum time.Duration) {
	p, credit := w.prefill[Proactive], s.credit+s.saved
	switch {
	case credit <= 0:
		return nil, 0
	case s.guaranteed():
		if d := s.decoder(); d != nil && (p == nil || !s.anyDue() && d.before(p)) {
			p = nil
		} else if p == nil || !s.reaches(p, credit) {
			return nil, 0
		}
	case p == nil || !p.promoted || !s.reaches(p, credit):
		return nil, 0
	}
	s.credit, s.saved = credit, 0
	return p, credit
}

// decoder is the first proactive sequence that is ready to decode, nil where none is, or where
// decode batches have a lane of their own.
func (s *Scheduler) decoder() *request {
	if s.cfg.Lanes > 1 {
		return nil
	}
	for _, r := range s.running {
		if r.class == Proactive && r.pending() == 1 && !s.cfg.Texts {
			return r
		}
	}
	return nil
}

// anyDue says whether somebody who is resident has a first quantum to come.
func (s *Scheduler) anyDue() bool {
	for _, r := range s.running {
		if s.due(r) {
			return true
		}
	}
	return false
}
