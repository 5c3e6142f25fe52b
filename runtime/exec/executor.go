package exec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/allreduce"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// executorConfig is what an Executor works on. Two executors, one a phase, share everything but the
// phase.
type executorConfig struct {
	Shards  *Shards
	Weights *Weights
	KV      KVStores
	States  *States // nil where no layer has one
	Buffers *Buffers
	Workers *Workers // that will run it
	Sync    Sync
	Phase   *plans.Phase
	Attend  microkernel.AttentionDot
	Context int // positions that a sequence may have; 0: what the model was trained for
}

// Executor runs forwards of one phase under its plan: every active worker of the pool walks the op
// list, takes chunks of each op and meets the others at a barrier after it. Nothing is allocated by
// Run. One Run at a time over the same Buffers.
type Executor struct {
	model     *model.Model
	layers    Layers
	steps     []step // of model.Ops
	embedding *embedding
	inputs    *embedding // of each layer's own inputs
	ranks     []rank
	groups    *Groups // nil with one rank
	bufs      *Buffers
	states    *States          // nil where no layer has one
	taps      [][]float32      // of convolutions, by op: [taps][channels]
	vec       *microkernel.Vec // of the main class, for what no single worker does
	classes   []class          // of workers
	pacer     *pacer           // of unlike workers; nil where all are alike
	rotations []rotation       // of model.Ropes
	scratch   []workerScratch
	memory    []*mem.Buffer          // scratch, by rank
	sum       *allreduce.Sum         // of Y over the ranks; nil with one rank
	after     []func(row0, row1 int) // by op: what a gather does with rows that are summed

	// The running forward, written before the workers start.
	batch     *kvcache.Batch
	rows      int
	positions []int32
	runs      [][]run // of each store but the one of states
	passages  []passage
	courses   []int // of the sequences, in passages
	partials  allreduce.Job
	gate      Gate
	from      int
	end       int // ops to run: without wanted logits the forward ends before the head
	next      int
	halt      atomic.Int64 // the step before which the gate told to halt; 0: none
	asked     int          // up to which step
	asking    func(next int)
	ended     time.Time // worker 0 passed the last barrier
	body      func(*pool.Worker)

	heir      *Executor     // see Expect
	rehearsal kvcache.Batch // of a forward of this one

	workers    *pool.Pool
	apartBytes int // of a worker
	places     int // positions that there are
	vocab      int // tokens that there are
}

type workerScratch struct {
	gemm  unsafe.Pointer
	apart unsafe.Pointer // apartBytes for a chunk that others may take back
	began time.Time      // the worker's part of the last Run
}

// newExecutor compiles the phase's schedules for every weight of the model. It fails where the plan
// has none for a weight, or names a kernel that this host cannot build.
func newExecutor(c executorConfig) (*Executor, error) {
	m := c.Shards.Whole
	e := &Executor{
		model: m, embedding: &c.Weights.embed, inputs: &c.Weights.inputs,
		steps: steps(c.Shards.list[0].model, c.Shards.Ranks(), c.Sync), ranks: make([]rank, c.Shards.Ranks()),
		groups: c.Workers.groups, bufs: c.Buffers, vec: c.Workers.Kernels.Vec,
		rotations: newRotations(m, cmp.Or(c.Context, m.Dims.Context)),
		positions: make([]int32, c.Buffers.rows),
		workers:   c.Workers.Pool,
		layers:    c.Shards.Layers, runs: make([][]run, len(c.Shards.Layers.Kinds)),
		states: c.States, taps: newTaps(m), classes: c.Workers.classes,
	}
	e.body, e.asking, e.places, e.vocab = e.walk, e.askLast, math.MaxInt, m.Dims.Vocab
	if m.Learned() {
		e.places = m.Dims.Context
	}
	if err := c.Workers.Kernels.buildPhase(c.Phase); err != nil {
		return nil, err
	}
	if err := e.compile(c); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if err := e.allocateScratch(c.Shards, c.Workers.Pool.PUs()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if e.groups != nil {
		e.prepareGathers()
	}
	return e, nil
}

// prepareGathers makes what sums the ranks' results.
func (e *Executor) prepareGathers() {
	e.sum = e.groups.sum
	e.partials = allreduce.Job{Width: e.model.Dims.Hidden, Partials: make([]allreduce.Matrix, len(e.ranks))}
	e.after = make([]func(row0, row1 int), len(e.steps))
	for i := range e.steps {
		if op := &e.model.Ops[i]; e.steps[i].mode == onGather {
			e.after[i] = func(row0, row1 int) { e.addNormRows(e.vec, op, row0, row1) }
		}
	}
}

// layPartials points the sums at the activations in use.
func (e *Executor) layPartials() {
	e.partials.Rows = e.rows
	for r := range e.partials.Partials {
		b := &e.bufs.ranks[r]
		e.partials.Partials[r] = allreduce.Matrix{Base: b.base[model.BufY], Stride: b.stride[model.BufY]}
	}
	e.partials.Into = e.partials.Partials[0]
}

// Close frees the scratch; no Run may be under way. Of workers that a Run ended without it waits
// until they have left it.
func (e *Executor) Close() (err error) {
	e.workers.Gather()
	for _, m := range e.memory {
		err = errors.Join(err, m.Free())
	}
	for r := range e.ranks {
		if a := e.ranks[r].attend; a != nil {
			err = errors.Join(err, a.Free())
		}
	}
	return err
}

// Ops is the number of ops of a forward: Run has finished one when it returns this.
func (e *Executor) Ops() int { return len(e.model.Ops) }

// Use makes b, which has the sizes of the first Buffers, the activations of the following Runs: a
// forward that was halted keeps its own while another one runs. No Run may be under way.
func (e *Executor) Use(b *Buffers) { e.bufs = b }

// Run executes ops from index `from` on the batch and returns the index of the first op not
// executed: Ops() when done, less when the gate (nil: none) halted it. Where the ops of the buffers
// are cut, an index counts steps, and Steps() is the last. To resume, call it again with the same
// batch and Buffers and that index. The logits of batch.LogitRows are then in Logits. A batch that
// does not fit the buffers, or a token outside the vocabulary, is an error.
func (e *Executor) Run(team Team, b *kvcache.Batch, from int, gate Gate) (next int, err error) {
	if err := e.prepare(b); err != nil {
		return from, err
	}
	e.from, e.next, e.gate, e.asked = from, e.Steps(), gate, from
	e.halt.Store(0)
	if len(e.ranks) <= pool.MostLists {
		team.RunElastic(e.body)
	} else {
		team.Run(e.body)
	}
	return e.next, nil
}

// prepare checks a batch and lays it out.
func (e *Executor) prepare(b *kvcache.Batch) error {
	if b.Rows() == 0 || b.Rows() > e.bufs.rows {
		return fmt.Errorf("a forward of %d tokens does not fit buffers for %d", b.Rows(), e.bufs.rows)
	}
	if len(b.LogitRows) > e.bufs.logitRows {
		return fmt.Errorf("logits of %d rows do not fit buffers for %d", len(b.LogitRows), e.bufs.logitRows)
	}
	for _, token := range b.Tokens {
		if token < 0 || int(token) >= e.vocab {
			return fmt.Errorf("token %d is outside the vocabulary of %d", token, e.vocab)
		}
	}
	for i := range b.Spans {
		s := &b.Spans[i]
		if end := s.Pos + s.Rows; end > e.places {
			return fmt.Errorf("position %d is beyond the %d that the model has learned", end-1, e.places)
		}
	}
	e.batch, e.rows = b, b.Rows()
	e.pacer.begin()
	e.layOut(b)
	if e.sum != nil {
		e.layPartials()
	}
	e.end = len(e.steps)
	if len(b.LogitRows) == 0 {
		e.end = slices.IndexFunc(e.model.Ops, func(op model.Op) bool {
			return op.Kind == model.OpGather || op.Kind == model.OpPool
		})
	}
	return nil
}

// layOut makes the positions, runs and attention tiles of a batch.
func (e *Executor) layOut(b *kvcache.Batch) {
	for i := range b.Spans {
		s := &b.Spans[i]
		for r := range s.Rows {
			e.positions[s.Row+r] = int32(s.Pos + r)
		}
	}
	for i := range e.runs {
		if e.states == nil || i != e.states.store {
			e.runs[i] = cutRuns(e.runs[i], b.Spans, i)
		}
	}
	if e.states != nil {
		e.passages = cutPassages(e.passages, b.Spans, e.states.store)
		e.courses = courses(e.courses, e.passages)
	}
	for r := range e.ranks {
		e.ranks[r].attend.Begin(b.Spans)
	}
}

// Logits returns the logits of batch.LogitRows[i] of the last finished Run, or what a pooled model
// answers to the text that ends there, valid until the next one.
func (e *Executor) Logits(i int) []float32 {
	return unsafe.Slice(e.bufs.ranks[0].row(model.BufLogits, i), e.model.Outputs)
}
