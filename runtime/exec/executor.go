package exec

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Team runs a function on every active worker: a *pool.Pool, or the *pool.Leader of an engine's loop.
type Team interface{ Run(fn func(*pool.Worker)) }

// Config is what an Executor works on. Two executors, one a phase, share everything but the phase.
type Config struct {
	Model   *model.Model
	Weights *Weights
	KV      *KVStore
	Buffers *Buffers
	Workers int // of the pool that will run it
	Phase   *plans.Phase
	Kernels *Kernels
}

// Executor runs forwards of one phase under its plan: every active worker of the pool walks the op list, takes chunks
// of each op and meets the others at a barrier after it. Nothing is allocated by Run. One Run at a time over
// the same Buffers.
type Executor struct {
	model   *model.Model
	weights *Weights
	kv      *KVStore
	bufs    *Buffers
	vec     *microkernel.Vec
	attend  *Attention
	rotate  rotation
	gemms   []*phaseGemm // by weight index
	scratch []workerScratch
	memory  *mem.Buffer

	// The running forward, written before the workers start.
	batch     *kvcache.Batch
	rows      int
	positions []int32
	runs      []run
	stop      *atomic.Bool
	from      int
	end       int // ops to run: without wanted logits the forward ends before the head
	next      int
	halt      [2]bool // what worker 0 read from stop after an op, by parity: it is never two ops ahead of the others
	chunks    pool.Counter
	quantized pool.Counter // the quantization that precedes an int8 product shares its op with the product
	ended     time.Time    // worker 0 passed the last barrier
	body      func(*pool.Worker)
}

type workerScratch struct {
	gemm  unsafe.Pointer
	began time.Time // the worker's part of the last Run
}

// New compiles the phase's schedules for every weight of the model. It fails where the plan has none for a weight, or
// names a kernel that this host cannot build.
func New(c Config) (*Executor, error) {
	e := &Executor{
		model: c.Model, weights: c.Weights, kv: c.KV, bufs: c.Buffers,
		vec: c.Kernels.Vec, rotate: newRotation(c.Model.Rope),
		positions: make([]int32, c.Buffers.rows),
	}
	e.body = e.walk
	var err error
	if err := e.compile(c); err != nil {
		return nil, err
	}
	if e.attend, err = NewAttention(c.Kernels.Vec.ISA(), c.KV, c.Model.Dims.Heads/c.Model.Dims.KVHeads, c.Workers); err != nil {
		return nil, err
	}
	if err := e.allocateScratch(c.Workers); err != nil {
		return nil, errors.Join(err, e.attend.Free())
	}
	return e, nil
}

func (e *Executor) compile(c Config) error {
	byKey := map[plans.WeightKey]*phaseGemm{}
	for i, w := range c.Model.Weights {
		packed := c.Weights.At(i)
		key := plans.WeightKey{N: w.N, K: w.K, Type: w.Tensor.Type.String()}
		g, done := byKey[key]
		if !done {
			var err error
			if g, err = newPhaseGemm(c.Kernels, c.Phase, key, packed.Compute); err != nil {
				return fmt.Errorf("weight %s (%s): %w", w.Role, w.Tensor.Name, err)
			}
			byKey[key] = g
		}
		e.gemms = append(e.gemms, g)
	}
	return nil
}

func (e *Executor) allocateScratch(workers int) error {
	gemm := 0
	for _, g := range e.gemms {
		gemm = max(gemm, g.scratchBytes)
	}
	for i := range e.model.Ops {
		if op := &e.model.Ops[i]; op.SwiGLU {
			gemm = max(gemm, e.pairScratch(op))
		}
	}
	each := gemm/4096*4096 + 4096
	memory, err := mem.Alloc(each*workers, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return err
	}
	e.memory = memory
	e.scratch = make([]workerScratch, workers)
	for i := range e.scratch {
		e.scratch[i].gemm = unsafe.Add(memory.Pointer(), i*each)
	}
	return nil
}

// Close frees the scratch; no Run may be under way.
func (e *Executor) Close() error { return errors.Join(e.memory.Free(), e.attend.Free()) }

// Ops is the number of ops of a forward: Run has finished one when it returns this.
func (e *Executor) Ops() int { return len(e.model.Ops) }

// Use makes b, which has the sizes of Config.Buffers, the activations of the following Runs: a forward that was halted keeps
// its own while another one runs. No Run may be under way.
func (e *Executor) Use(b *Buffers) { e.bufs = b }

// Run executes ops from index `from` on the batch and returns the index of the first op not executed: Ops() when done,
// less when stop was set meanwhile. To resume, call it again with the same batch and Buffers and that index. The logits of
// batch.LogitRows are then in Logits. A batch that does not fit the buffers, or a token outside the vocabulary, is an error.
func (e *Executor) Run(team Team, b *kvcache.Batch, from int, stop *atomic.Bool) (next int, err error) {
	if err := e.prepare(b); err != nil {
		return from, err
	}
	e.from, e.next, e.stop = from, len(e.model.Ops), stop
	team.Run(e.body)
	return e.next, nil
}

// prepare lays the batch out: positions, runs and attention tiles.
func (e *Executor) prepare(b *kvcache.Batch) error {
	if b.Rows() == 0 || b.Rows() > e.bufs.rows {
		return fmt.Errorf("a forward of %d tokens does not fit buffers for %d", b.Rows(), e.bufs.rows)
	}
	if len(b.LogitRows) > e.bufs.logitRows {
		return fmt.Errorf("logits of %d rows do not fit buffers for %d", len(b.LogitRows), e.bufs.logitRows)
	}
	for _, token := range b.Tokens {
		if token < 0 || int(token) >= e.model.Dims.Vocab {
			return fmt.Errorf("token %d is outside the vocabulary of %d", token, e.model.Dims.Vocab)
		}
	}
	for i := range b.Spans {
		s := &b.Spans[i]
		for r := range s.Rows {
			e.positions[s.Row+r] = int32(s.Pos + r)
		}
	}
	e.batch, e.rows = b, b.Rows()
	e.runs = cutRuns(e.runs, b.Spans)
	e.attend.Begin(b.Spans)
	e.end = len(e.model.Ops)
	if len(b.LogitRows) == 0 {
		e.end = slices.IndexFunc(e.model.Ops, func(op model.Op) bool { return op.Kind == model.OpGather })
	}
	return nil
}

// walk is what each worker does.
func (e *Executor) walk(w *pool.Worker) {
	e.scratch[w.Index()].began = time.Now()
	if w.ID() == 0 {
		defer func() { e.ended = time.Now() }()
	}
	for i := e.from; i < e.end; i++ {
		e.do(w, &e.model.Ops[i])
		if w.ID() == 0 {
			e.halt[i&1] = e.stop != nil && e.stop.Load()
		}
		w.Barrier()
		if e.halt[i&1] {
			if w.ID() == 0 && i+1 < e.end {
				e.next = i + 1
			}
			return
		}
	}
}

func (e *Executor) do(w *pool.Worker, op *model.Op) {
	switch op.Kind {
	case model.OpEmbed:
		e.embed(w)
	case model.OpNorm:
		e.norm(w, op)
	case model.OpMatMul:
		e.matMul(w, op)
	case model.OpRotate:
		e.rotateHeads(w, op)
	case model.OpAttention:
		e.attend.Run(w, op.Layer, e.bufs.rowsOf(model.BufQ), e.bufs.rowsOf(model.BufAtt))
	case model.OpAddNorm:
		e.addNorm(w, op)
	case model.OpGather:
		e.gather(w)
	case model.OpRoute:
		e.route(w)
	case model.OpDispatch:
		e.dispatch(w)
	case model.OpExperts:
		e.experts(w, op)
	case model.OpCombine:
		e.combine(w)
	}
}

// Span returns when the last of the active workers (indices) began the first op of the last Run, and when its last op
// ended: what the gap between two forwards is measured by.
func (e *Executor) Span(active []int) (began, ended time.Time) {
	for _, w := range active {
		if t := e.scratch[w].began; t.After(began) {
			began = t
		}
	}
	return began, e.ended
}

// Logits returns the logits of batch.LogitRows[i] of the last finished Run, valid until the next one.
func (e *Executor) Logits(i int) []float32 {
	return unsafe.Slice(e.bufs.row(model.BufLogits, i), e.model.Dims.Vocab)
}
