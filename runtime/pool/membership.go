package pool

import "sync/atomic"

// A worker at risk of losing its CPU computes into its private buffer and commits each chunk once.
// When all chunks of a phase are given out and such a worker has held one for too long, another
// worker reclaims the chunk and leaves the first one out of the team until it rejoins. Each worker
// has one word that only compare-and-swap changes: either it commits or another worker has the
// chunk, never both. A late worker writes only to its private buffer.

// place is the state of a member of a team in preemption-tolerant mode in a phase.
type place uint64

const (
	placeOut     place = iota // left the team: no worker waits for it
	placeBusy                 // in the phase: the others wait for it
	placeSpent                // found no chunk left and holds none
	placeWaiting              // arrived at the barrier after the phase
	placeOffered              // computes the list's chunk of that number into its private buffer
)

// in returns the member's word for a place in a phase, at its first list of chunks.
func (s place) in(phase uint64) uint64 { return uint64(s)<<placeShift | (phase&phaseMask)<<chunkBits }

func placeOf(word uint64) place { return place(word >> placeShift) }

func listOf(word uint64) uint64 { return word >> listShift & (1<<listBits - 1) }

func phaseOf(word uint64) uint64 { return word >> chunkBits & phaseMask }

// member is the state of a worker that other workers read and change.
type member struct {
	word  atomic.Uint64 // place, list, phase, chunk
	since atomic.Int64  // when the offered chunk began
	_     [cacheLine - 16]byte
}

// membership is the barrier of a team in preemption-tolerant mode, which continues without
// descheduled workers. Its word has the phase in progress and the numbers of members that are out
// and that have arrived. The phase is over when together they are all.
type membership struct {
	_       [cacheLine]byte
	word    atomic.Uint64
	_       [cacheLine - 8]byte
	at      [2]phaseStep  // by the parity of the phase
	takes   atomic.Uint64 // phase of the last reclaimed chunk, and their number in it
	members []member
}

// takesBits is the number of bits that count reclaimed chunks of a phase.
const takesBits = 8

// taken notes that a chunk of the phase was reclaimed.
func (g *membership) taken(phase uint64) {
	for {
		old := g.takes.Load()
		next := phase&phaseMask<<takesBits | 1
		if old>>takesBits == phase&phaseMask {
			next = min(old+1, next|(1<<takesBits-1))
		}
		if g.takes.CompareAndSwap(old, next) {
			return
		}
	}
}

// tries returns how many chunks of the phase were reclaimed.
func (g *membership) tries(phase uint64) int {
	if word := g.takes.Load(); word>>takesBits == phase&phaseMask {
		return int(word & (1<<takesBits - 1))
	}
	return 0
}

// phaseStep is the step of the run to which a phase belongs, and the first phase of the step.
type phaseStep struct {
	number atomic.Int64
	first  atomic.Uint64
}

func (s *phaseStep) set(number int64, first uint64) {
	s.number.Store(number)
	s.first.Store(first)
}

const (
	memberBits  = 11
	memberMask  = 1<<memberBits - 1
	memberShift = 2 * memberBits
	maxMembers  = memberMask // maximum workers of a team in preemption-tolerant mode
	outOne      = 1 << memberBits
)

func (g *membership) phase() uint64 { return g.word.Load() >> memberShift & phaseMask }

// begin prepares a run that starts in a phase in preemption-tolerant mode: all members are out, and
// each joins when it comes.
func (g *membership) begin(phase uint64) {
	for i := range g.members {
		g.members[i].word.Store(placeOut.in(phase))
	}
	g.at[phase&1].set(-1, phase)
	g.word.Store(phase<<memberShift | uint64(len(g.members))<<memberBits)
}

// raise starts preemption-tolerant mode during a run. The last member that arrives at the barrier
// after a phase calls it while all others wait there. Step next begins after the barrier.
func (g *membership) raise(phase uint64, next int) {
	for i := range g.members {
		g.members[i].word.Store(placeWaiting.in(phase))
	}
	g.at[(phase+1)&1].set(int64(next), phase+1)
	g.word.Store((phase + 1) << memberShift)
}

// count adds members that are out and that have arrived, and ends the phase if they are all. next
// is the step that begins after it; -1: the same step continues. count calls last before the phase
// ends.
func (g *membership) count(phase, out, arrived uint64, next int, last func(int)) {
	for {
		word := g.word.Load()
		if word>>memberShift&phaseMask != phase&phaseMask {
			return
		}
		o, a := word>>memberBits&memberMask+out, word&memberMask+arrived
		to := phase<<memberShift | o<<memberBits | a
		if int(o+a) == len(g.members) && a > 0 {
			to = (phase+1)<<memberShift | o<<memberBits
			if last != nil {
				last(next)
			}
			if next >= 0 {
				g.at[(phase+1)&1].set(int64(next), phase+1)
			} else {
				was := &g.at[phase&1]
				g.at[(phase+1)&1].set(was.number.Load(), was.first.Load())
			}
		}
		if g.word.CompareAndSwap(word, to) {
			return
		}
	}
}

// idle reports whether a member that has not arrived after the phase holds no chunk of it.
func idle(word, phase uint64) bool {
	return placeOf(word) == placeSpent && phaseOf(word) == phase&phaseMask || word == placeWaiting.in(phase-1)
}
