package exec

import (
	"cmp"
	"errors"
	"math"
	"time"
	"unsafe"

	"sandwich/runtime/allreduce"
	"sandwich/runtime/background"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/rowwise"
	"sandwich/runtime/exec/state"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool/thread"
)

// newExecutor compiles the schedules of a phase for every weight of the model. It is an error if
// the plan has none for a weight, or names a kernel that this host cannot build.
func newExecutor(c executorConfig) (*Executor, error) {
	m := c.Shards.Whole
	context := cmp.Or(c.Context, m.Dims.Context)
	e := &Executor{
		model: m, layers: &c.Shards.Layers, ops: tp.Ops(c.Shards.List[0].Model, c.Shards.Ranks(), c.Sync),
		ranks: make([]rank, c.Shards.Ranks()), groups: c.Workers.groups, bufs: c.Buffers, kv: c.KV, states: c.States,
		kinds: c.Workers.kinds, workers: c.Workers.Pool, began: make([]time.Time, c.Workers.Pool.Size()),
		positions: math.MaxInt, vocab: m.Dims.Vocab,
	}
	e.body, e.asking = e.walk, e.askNext
	if m.LearnedPositions() {
		e.positions = m.Dims.Context
	}
	c.Pieces.Once(func() {
		e.attention = attention.NewOps(m, e.layers, context)
		e.rowwise = rowwise.NewOps(m, c.Weights, e.attention.Ropes, c.Buffers.rows)
		e.state = state.NewOps(m, c.States)
	})
	if err := gemm.BuildPhase(c.Phase, c.Pieces); err != nil {
		return nil, err
	}
	if err := e.compileRanks(c); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	var err error
	if c.Pieces.Once(func() { err = e.allocateScratch(c.Shards, c.Workers.Pool.PUs()) }); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.touchScratch(c.Pieces)
	if e.groups != nil {
		e.compileGathers()
	}
	return e, nil
}

// compileRanks compiles products and attention of every rank.
func (e *Executor) compileRanks(c executorConfig) error {
	shape := attention.ShapeOf(e.model, e.layers)
	shape.Dot = c.Attention
	var weights []*gemm.Weights
	for r := range e.ranks {
		own, shard := &e.ranks[r], &c.Shards.List[r]
		own.shard, own.counters = shard, tp.NewCounters(r)
		weights = append(weights, c.Weights.Of(r))
		var err error
		if aside(c.Pieces, func() {
			own.attention, err = attention.New(isasOf(e.kinds), c.KV[r], shape, c.Workers.Pool.Size(), c.team())
		}); err != nil {
			return err
		}
		if e.groups != nil { // of models with equal layers
			own.attention.ForRank(r, shard.Share.Heads.Lo-shard.Share.KVHeads.Lo*shape.Groups[0],
				shard.Share.Heads.Len())
		}
	}
	var products []*gemm.Products
	var err error
	if c.Pieces.Once(func() {
		products, e.throughput, err = gemm.Compile(e.kinds, c.Phase, c.Shards.List, weights, c.Workers.heterogeneous,
			c.Workers.Pool.Classes())
	}); err != nil {
		return err
	}
	for r := range e.ranks {
		e.ranks[r].products = products[r]
	}
	return nil
}

// compileGathers prepares the sums over the ranks.
func (e *Executor) compileGathers() {
	e.partials = allreduce.Job{Width: e.model.Dims.Hidden, Partials: make([]allreduce.Matrix, len(e.ranks))}
	e.after = make([]func(row0, row1 int), len(e.ops))
	vec := e.kinds[0].Vec
	for i := range e.ops {
		if op := &e.model.Ops[i]; e.ops[i].Mode == tp.Gather {
			e.after[i] = func(row0, row1 int) { e.rowwise.AddSummed(vec, op, row0, row1) }
		}
	}
}

// team returns how many workers share the work of a rank in the phase.
func (c *executorConfig) team() int {
	active := c.Workers.Pool.Size()
	if n := c.Phase.PUs.Count(); n > 0 {
		active = min(active, n)
	}
	return max(1, active/c.Shards.Ranks())
}

// allocateScratch gives each worker its memory, on the node of its rank.
func (e *Executor) allocateScratch(p *tp.Shards, pus []int) error {
	const page = 4096
	work, private := 0, 0
	for r := range e.ranks {
		own := &e.ranks[r]
		m := own.shard.Model
		work = max(work, own.products.ScratchBytes(e.bufs.rows), state.ScratchBytes(m), rowwise.ScratchBytes(m))
		private = max(private, own.products.PrivateBytes(e.bufs.rows), attention.PrivateBytes(m),
			rowwise.PrivateBytes(m))
	}
	work = work/page*page + page
	private = (private + page - 1) / page * page
	each := work + private
	e.scratch = make([]tp.Scratch, len(pus))
	for r := range e.ranks {
		var workers []int
		for index, pu := range pus {
			if p.RankOf(pu) == r {
				workers = append(workers, index)
			}
		}
		memory, err := mem.Alloc(each*len(workers), mem.Options{Node: p.List[r].Node, Huge: true})
		if err != nil {
			return err
		}
		e.memory = append(e.memory, memory)
		for i, index := range workers {
			e.scratch[index] = tp.Scratch{Work: unsafe.Add(memory.Pointer(), i*each),
				Private: unsafe.Add(memory.Pointer(), i*each+work), PrivateBytes: private}
		}
	}
	return nil
}

// touchScratch faults in the pages of scratch memory that is bound to a node. Other memory is
// placed by the workers that use it first.
func (e *Executor) touchScratch(pieces background.Run) {
	for _, m := range e.memory {
		if m.Node() == mem.AnyNode {
			continue
		}
		const hugePage = 2 << 20
		at := 0
		pieces.Do(func() bool {
			m.Touch(at, min(at+hugePage, m.Len()))
			at += hugePage
			return at < m.Len()
		})
	}
}

// aside does work that takes longer than a piece and cannot be divided. pieces is not nil if the
// cores have other users: then it runs next to them, on a thread of low priority.
func aside(pieces background.Run, work func()) {
	if pieces == nil {
		work()
		return
	}
	thread.Low(work)
}
