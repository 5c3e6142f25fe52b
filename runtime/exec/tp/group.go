package tp

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Group is the workers that run an op together on the same operands, as one of them sees it: all
// active workers in a serial op and in a gather, the workers of one rank in between.
type Group struct {
	W       *pool.Worker
	ID, N   int  // number of the worker in the group, and size of the group
	PerRank bool // the workers of one rank
	Rank    int  // whose operands they use
	Shard   *Shard
	Acts    *Activations
	Kind    int // worker kind of the worker
	Vec     *microkernel.Vec
	Scratch *Scratch
	Count   *Counters
}

// Scratch is the memory of one worker.
type Scratch struct {
	Work         unsafe.Pointer // for the op at hand
	Private      unsafe.Pointer // for results of a chunk that others may reclaim
	PrivateBytes int
}

// Counters hand out the chunks of a rank's ops.
type Counters struct{ chunks, quantize pool.Counter }

// NewCounters returns the counters of a rank.
func NewCounters(rank int) *Counters {
	c := &Counters{}
	c.chunks.List, c.quantize.List = uint8(rank), uint8(rank)
	return c
}

// Members returns the indices of the group's workers by their number in it.
func (g *Group) Members() []int {
	if g.PerRank {
		return g.W.Group().Members()
	}
	return g.W.Team()
}

// Next hands out the chunks of the group's op.
func (g *Group) Next(total, chunk int) (lo, hi int, ok bool) {
	return g.W.Next(&g.Count.chunks, total, chunk)
}

// NextQuantize hands out chunks of the quantization of activations before a product.
func (g *Group) NextQuantize(total, chunk int) (lo, hi int, ok bool) {
	return g.W.Next(&g.Count.quantize, total, chunk)
}

// Barrier returns when all workers of the group have called it.
func (g *Group) Barrier() {
	if g.PerRank {
		g.W.LocalBarrier()
	} else {
		g.W.Barrier()
	}
}

// Row returns the address of the first element of a row.
func (g *Group) Row(buf model.Buf, r int) *float32 { return g.Acts.Row(buf, r) }
