package pool

import (
	"sync/atomic"

	"sandwich/runtime/pool/internal/sys"
)

const fanIn = 8 // arrivals that share a counter; beyond it the barrier is a tree

// node counts the arrivals of up to fanIn workers, or of as many nodes below it.
type node struct {
	count  atomic.Int32
	want   int32
	parent int32 // index in barrier.nodes, -1 for the root
	_      [cacheLine - 12]byte
}

// barrier is a combining tree: neighbours meet at a leaf, the last of them goes on to its parent,
// and the last at the root advances the event that everybody watches. Up to fanIn workers it is one
// counter beside the event, so that the last arrival finds both in one cache line. Counters are
// back at zero before the event advances, so the barrier can be entered again at once.
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

// arrive enters member and reports whether it was the last of all.
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

// reset forgets arrivals after a run that a panic cut short. No worker is inside.
func (b *barrier) reset() {
	b.root.Store(0)
	for i := range b.nodes {
		b.nodes[i].count.Store(0)
	}
}

// pass enters the barrier as member and returns when all have entered. It panics with errAborted,
// to unwind the run, when some worker failed: that one advances the event without having arrived.
// Where next is not negative and a worker is at risk, the last to arrive puts the team on its
// guard.
func (b *barrier) pass(w *Worker, member, next int) {
	old := b.epoch.Load()
	if w.pool.aborting.Load() { // after the load: a later abort advances past old
		panic(errAborted)
	}
	w.barriers++
	if b.arrive(member) {
		w.Heed(next)
		b.epoch.Advance()
		return
	}
	parks := w.parks
	w.wait(&b.epoch, old)
	if w.pool.aborting.Load() {
		panic(errAborted)
	}
	w.doubt(parks)
}
