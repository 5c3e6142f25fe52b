package pool

import (
	"sync/atomic"

	"sandwich/runtime/pool/internal/sys"
)

const fanIn = 8 // arrivals that share a counter; with more workers the barrier is a tree

// node counts the arrivals of up to fanIn workers or lower nodes.
type node struct {
	count  atomic.Int32
	want   int32
	parent int32 // index in barrier.nodes, -1 for the root
	_      [cacheLine - 12]byte
}

// barrier is a combining tree: adjacent workers meet at a leaf, the last of them continues to its
// parent, and the last one at the root advances the event that all wait on. Up to fanIn workers it
// is one counter next to the event, so that the last worker finds both in one cache line. Counters
// are zero again before the event advances, so the barrier can be entered again at once.
type barrier struct {
	_     [cacheLine]byte
	root  atomic.Int32
	epoch sys.Event
	_     [cacheLine]byte
	want  int32
	nodes []node // leaves first; empty for up to fanIn workers
}

func newBarrier(workers int) *barrier {
	b := &barrier{want: int32(workers)}
	if workers <= fanIn {
		return b
	}
	below := workers // arrivals at the level being built
	for first := 0; ; {
		level := (below + fanIn - 1) / fanIn
		for i := range level {
			parent := int32(-1)
			if level > 1 {
				parent = int32(first + level + i/fanIn)
			}
			b.nodes = append(b.nodes, node{want: int32(min(fanIn, below-i*fanIn)), parent: parent})
		}
		if level == 1 {
			return b
		}
		first += level
		below = level
	}
}

// arrive enters a member and reports whether it was the last of all.
func (b *barrier) arrive(member int) bool {
	if len(b.nodes) == 0 {
		if b.root.Add(1) < b.want {
			return false
		}
		b.root.Store(0)
		return true
	}
	for i := int32(member / fanIn); ; {
		n := &b.nodes[i]
		if n.count.Add(1) < n.want {
			return false
		}
		n.count.Store(0)
		if n.parent < 0 {
			return true
		}
		i = n.parent
	}
}

// reset forgets arrivals after a run that a panic ended early. No worker is inside.
func (b *barrier) reset() {
	b.root.Store(0)
	for i := range b.nodes {
		b.nodes[i].count.Store(0)
	}
}

// Flags are numbered words that workers raise and wait on: synchronization of the workers that
// share data, without a barrier of all. A flag has the highest number to which it was raised and is
// never lowered, so it needs no reset. Numbers made from Worker.Run are higher in every later run,
// also after one that a panic ended early.
type Flags struct{ list []flag }

type flag struct {
	at atomic.Uint64
	sys.Event
}

// Raise sets flag i to a number that is higher than any before it, and releases the workers that
// wait for it. They see all earlier writes of the caller.
func (f *Flags) Raise(i int, to uint64) {
	e := &f.list[i]
	e.at.Store(to)
	e.Advance()
}

// abort releases every waiter. Pool.aborting is set.
func (f *Flags) abort() {
	for i := range f.list {
		f.list[i].Advance()
	}
}
