package exec

import (
	"time"

	"sandwich/microkernel"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Team runs a function on every active worker, or on those that have their CPUs: a *pool.Pool, or
// the *pool.Leader of an engine's loop.
type Team interface {
	Run(fn func(*pool.Worker))
	RunElastic(fn func(*pool.Worker))
}

// group is the workers that share an op and its operands, as one of them sees it: all active
// workers in a serial op and in a gather, those of one rank between.
type group struct {
	w     *pool.Worker
	id, n int // the worker's number in the group, and how many there are
	local bool
	shard *shard
	bufs  *rankBuffers
	rank  *rank
	class int          // of the worker
	gemms []*phaseGemm // the rank's, as its class runs them
	vec   *microkernel.Vec
}

// rank is what the executor keeps for one tensor-parallel rank.
type rank struct {
	shard   *shard
	weights *rankWeights
	kv      *KVStore
	attend  *Attention
	gemms   []*phaseGemm   // by weight index, nil for what the rank does not hold; of the main class
	others  [][]*phaseGemm // the same of the other classes
	common  [][]common     // by op, of unlike workers
	parts   []pool.Stretch // theirs, by number in the group
	chunks  pool.Counter   // its list of a phase is the rank's number
	rounded pool.Counter   // the same; rounding activations for a product shares the op with it
}

// together is the group of all active workers, on the operands of the first rank.
func (e *Executor) together(w *pool.Worker) group {
	return e.equip(group{w: w, id: w.ID(), n: w.N(), bufs: &e.bufs.ranks[0], rank: &e.ranks[0]})
}

// apart is the group of a rank, the worker's own or one that it helps.
func (e *Executor) apart(w *pool.Worker, r int) group {
	return e.equip(group{w: w, id: w.GroupRank(), n: w.Groups()[r].Size(), local: true, bufs: &e.bufs.ranks[r],
		rank: &e.ranks[r]})
}

// equip gives the worker the code of its class.
func (e *Executor) equip(g group) group {
	g.class, g.shard = g.w.Class(), g.rank.shard
	g.gemms, g.vec = g.rank.of(g.class), e.classes[g.class].kernels.Vec
	return g
}

// of are the products as a class of workers runs them.
func (r *rank) of(class int) []*phaseGemm {
	if class == 0 {
		return r.gemms
	}
	return r.others[class-1]
}

// members are the indices of the group's workers, by their number in it.
func (g *group) members() []int {
	if g.local {
		return g.w.Group().Members()
	}
	return g.w.Team()
}

// next hands out the chunks of the group's op.
func (g *group) next(total, chunk int) (lo, hi int, ok bool) {
	return g.w.Next(&g.rank.chunks, total, chunk)
}

// nextRounded hands out chunks of the step before a product whose weights read rounded activations.
func (g *group) nextRounded(total, chunk int) (lo, hi int, ok bool) {
	return g.w.Next(&g.rank.rounded, total, chunk)
}

// barrier returns when the whole group has called it.
func (g *group) barrier() {
	if g.local {
		g.w.LocalBarrier()
	} else {
		g.w.Barrier()
	}
}

// row points at the first element of a row.
func (g *group) row(buf model.Buf, r int) *float32 { return g.bufs.row(buf, r) }

// Span returns when the last of the active workers (indices) began the first op of the last Run,
// and when its last op ended: what the gap between two forwards is measured by.
func (e *Executor) Span(active []int) (began, ended time.Time) {
	for _, w := range active {
		if t := e.scratch[w].began; t.After(began) {
			began = t
		}
	}
	return began, e.ended
}
