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

// pass enters the barrier as member and returns when all have entered. It panics with errAborted to
// unwind the run if a worker failed: that worker advances the event without having arrived. If next
// is not negative and a worker is at risk, the last worker that arrives starts preemption-tolerant
// mode.
func (b *barrier) pass(w *Worker, member, next int) {
	old := b.epoch.Load()
	if w.pool.aborting.Load() { // after the load: a later abort advances past old
		panic(errAborted)
	}
	w.barriers++
	if b.arrive(member) {
		w.CheckRisk(next)
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
