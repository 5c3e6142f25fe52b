package exec

import (
	"errors"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/allreduce"
	"sandwich/runtime/background"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/load"
	"sandwich/runtime/exec/rowwise"
	"sandwich/runtime/exec/state"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// executorConfig is what an Executor works on. The executors of both phases share everything except
// the phase.
type executorConfig struct {
	Shards    *tp.Shards
	Weights   *load.Weights
	KV        attention.KVStores
	States    *state.States // nil if no layer has a state
	Buffers   *Buffers
	Workers   *Workers
	Sync      tp.Sync
	Phase     *plans.Phase
	Attention microkernel.AttentionDot
	Context   int            // positions of a sequence; 0: the context of the model
	Pieces    background.Run // compiles
}

// Executor runs forwards of one phase under its plan. Run allocates nothing. Only one Run may be in
// progress on the same Buffers.
type Executor struct {
	model  *model.Model
	layers *tp.Layers
	ops    []tp.Op // how the ranks run each op of the model
	ranks  []rank
	groups *Groups // nil with one rank
	bufs   *Buffers
	kv     attention.KVStores
	states *state.States
	kinds  []gemm.Kind

	throughput *gemm.Throughput // nil unless workers are heterogeneous
	rowwise    *rowwise.Ops
	attention  *attention.Ops
	state      *state.Ops

	partials allreduce.Job
	after    []func(row0, row1 int) // by op: what a gather does with rows that are summed

	scratch []tp.Scratch  // by worker
	memory  []*mem.Buffer // of scratch, by rank
	workers *pool.Pool

	forward forward
	body    func(*pool.Worker)
	asking  func(next int)
	began   []time.Time // by worker: its start of the last Run
	ended   time.Time   // worker 0 passed the last barrier

	successor    *Executor     // see Prewarm
	prewarmBatch kvcache.Batch // for the executors that Prewarm this one

	positions int // that the model can have
	vocab     int
}

// rank is the part of the executor for one tensor-parallel rank.
type rank struct {
	shard     *tp.Shard
	products  *gemm.Products
	attention *attention.Attention
	counters  *tp.Counters
}

// Team runs a function on every active worker, or in preemption-tolerant mode on those that have
// their CPUs. A *pool.Pool and the *pool.Leader of an engine's loop are teams.
type Team interface {
	Run(fn func(*pool.Worker))
	RunTolerant(fn func(*pool.Worker))
}

// Close frees the scratch memory. No Run may be in progress. It waits for workers that a Run ended
// without.
func (e *Executor) Close() (err error) {
	e.workers.Gather()
	for _, m := range e.memory {
		err = errors.Join(err, m.Free())
	}
	for r := range e.ranks {
		if a := e.ranks[r].attention; a != nil {
			err = errors.Join(err, a.Free())
		}
	}
	return err
}

// Ops returns the number of ops of a forward. Run returns it when the forward is done.
func (e *Executor) Ops() int { return len(e.model.Ops) }

// Use makes b the activations of the following Runs. b has the sizes of the first Buffers. A halted
// forward keeps its Buffers while another one runs. No Run may be in progress.
func (e *Executor) Use(b *Buffers) { e.bufs = b }

// Run executes a batch from step `from` on and returns the first step that was not executed: Ops()
// when the forward is done, less if the gate (nil: none) halted it. If ops of the buffers are
// divided, steps are counted instead of ops, and a forward is done at Steps(). To resume, call Run
// with the same batch, the same Buffers and that step. Logits then returns the logits of
// batch.LogitRows. A batch that does not fit the buffers, and a token outside the vocabulary, are
// errors.
func (e *Executor) Run(team Team, b *kvcache.Batch, from int, gate Gate) (next int, err error) {
	if err := e.begin(b, from, gate); err != nil {
		return from, err
	}
	if len(e.ranks) <= pool.MostLists {
		team.RunTolerant(e.body)
	} else {
		team.Run(e.body)
	}
	return e.forward.next, nil
}

// Logits returns the logits of batch.LogitRows[i] of the last finished Run, or the result of a
// pooled model for the text that ends there. They are valid until the next Run.
func (e *Executor) Logits(i int) []float32 {
	return unsafe.Slice(e.bufs.ranks[0].Row(model.BufLogits, i), e.model.Outputs)
}

// Span returns when the last of the active workers (indices) began the first op of the last Run,
// and when its last op ended. The gap between two forwards is measured by it.
func (e *Executor) Span(active []int) (began, ended time.Time) {
	for _, w := range active {
		if t := e.began[w]; t.After(began) {
			began = t
		}
	}
	return began, e.ended
}

// groupOfAll returns the group of all active workers, on the operands of the first rank.
func (e *Executor) groupOfAll(w *pool.Worker) tp.Group {
	return e.group(w, 0, tp.Group{ID: w.ID(), N: w.N()})
}

// groupOfRank returns the group of a rank: the worker's own, or one that it helps.
func (e *Executor) groupOfRank(w *pool.Worker, r int) tp.Group {
	return e.group(w, r, tp.Group{ID: w.GroupRank(), N: w.Groups()[r].Size(), PerRank: true})
}

// group completes a group on the operands of a rank.
func (e *Executor) group(w *pool.Worker, r int, g tp.Group) tp.Group {
	g.W, g.Rank, g.Shard, g.Acts = w, r, e.ranks[r].shard, &e.bufs.ranks[r]
	g.Kind = w.Class()
	g.Vec = e.kinds[g.Kind].Vec
	g.Scratch, g.Count = &e.scratch[w.Index()], e.ranks[r].counters
	return g
}
