package exec

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/background"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/load"
	"sandwich/runtime/exec/state"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/pool/poolset"
)

// Options say what Open assembles and how much it must hold.
type Options struct {
	File      *gguf.File
	Plan      *plans.Plan // how weights are divided and computed, and the element type of the KV cache
	Blocks    int         // KV blocks of 64 positions for all sequences together
	Least     int         // blocks to use at least if Blocks take more than half of the free memory; 0: Blocks
	Sequences int         // that hold blocks at the same time; 1
	// StateBytes is the memory for checkpoints of recurrent states, from which a text can be
	// continued. 0: a default; negative: none.
	StateBytes int64
	// DraftRows is the number of drafted rows of a forward after which recurrent states can be
	// kept, in addition to the default number of checkpoints, if that takes little memory.
	DraftRows int
	LogitRows int           // most rows of a forward whose logits are wanted
	Context   int           // positions of a sequence; 0: the context of the model
	Spin      time.Duration // pool.Options.Spin of the workers
	Unpinned  bool          // workers are not bound to PUs, so that a plan may have more of them than this machine
	Sync      tp.Sync       // how ranks wait for each other
	Progress  func(done, total int64)
	Digest    bool // hash the model while it is packed, for Identity
	// Memory allocates the weights and the KV cache, such as memory that a device uses too; nil:
	// mem.Alloc.
	Memory mem.Allocator

	// Turns, unless nil, gives the cores to other users between pieces of the load, of the
	// compilation of executors and of Close. They use it one after the other.
	Turns background.Turns

	// Pools, unless nil, has the worker threads, which other assemblies may use too. They must not
	// run at the same time.
	Pools *poolset.Set

	// Workers run the model, unless nil, instead of those that Spin and Unpinned describe. They are
	// divided among the plan's ranks and outlive the assembly.
	Workers *Workers

	// SharedWeights is an open assembly, unless nil, whose model, weights and activations this one
	// uses, and its KV cache if both plans keep the same. It replaces File, Blocks, Sequences,
	// StateBytes, LogitRows and Context, and must outlive this assembly. SharesWeights reports
	// which plans can use it.
	SharedWeights *Assembly
}

// newWorkers starts the workers that the options describe.
func (o *Options) newWorkers() (*Workers, error) {
	w := PlanWorkers(o.Plan)
	w.Spin, w.Unpinned = o.Spin, o.Unpinned
	w.Pools, w.Pieces = o.Pools, background.In(o.Turns)
	return NewWorkers(w)
}

// Assembly is a model that is ready to run. Engines serve with it and the tuner measures forwards
// on it. Compile returns its executors.
type Assembly struct {
	Model   *model.Model
	Plan    *plans.Plan
	Shards  *tp.Shards
	Workers *Workers
	Weights *load.Weights
	Blocks  int            // KV blocks of 64 positions for all sequences together
	Stores  []kvcache.Spec // of the KV cache, by kind of layers
	KV      attention.KVStores
	States  *state.States // nil if no layer has a state
	Buffers *Buffers      // activations of one forward
	Packing time.Duration // time that packing the weights took

	turns      background.Turns
	sync       tp.Sync
	rows       int // most rows of a forward
	logits     int // most of them whose logits are wanted
	context    int // Options.Context
	digest     [sha256.Size]byte
	ownWorkers bool

	sharedWeights *Assembly // whose model, weights, activations and states these are; nil: its own
	sharesKV      bool      // the KV cache belongs to sharedWeights too
}

// Open loads the model under the plan. Errors name what does not fit: the architecture, a weight
// that the plan does not have, a kernel that this host cannot run, or memory, with the amount that
// is missing. When ctx ends, loading stops soon with the cause of ctx and frees everything.
func Open(ctx context.Context, o Options) (*Assembly, error) {
	if o.SharedWeights != nil {
		return openShared(&o)
	}
	m, shards, err := o.read()
	if err != nil {
		return nil, err
	}
	a := &Assembly{Model: m, Plan: o.Plan, Shards: shards, Workers: o.Workers, ownWorkers: o.Workers == nil,
		turns: o.Turns, sync: o.Sync, rows: o.rows(m), logits: o.LogitRows, context: o.Context}
	if m.LearnedPositions() && o.Context > m.Dims.Context {
		return nil, fmt.Errorf("the model has learned %d positions, and a context of %d needs more: lower --ctx",
			m.Dims.Context, o.Context)
	}
	a.Blocks, a.Stores = o.stores(shards)
	if err := a.checkMemory(a.Blocks); err != nil {
		return nil, err
	}
	if err := a.assemble(ctx, &o); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// read returns the model of the file and its division among the ranks.
func (o *Options) read() (m *model.Model, shards *tp.Shards, err error) {
	aside(background.In(o.Turns), func() {
		if m, err = modelfile.Load(o.File); err == nil {
			shards, err = divideModel(m, o.Plan)
		}
		// gguf.ErrChanged names the file itself.
		if path := o.File.Path(); err != nil && path != "" && !errors.Is(err, gguf.ErrChanged) {
			err = fmt.Errorf("%s: %w", path, err)
		}
	})
	return m, shards, err
}

func (a *Assembly) assemble(ctx context.Context, o *Options) (err error) {
	if a.Workers == nil {
		if a.Workers, err = o.newWorkers(); err != nil {
			return err
		}
	}
	if a.KV, err = attention.NewKVStores(a.Shards, o.Plan, a.Stores, o.Memory); err != nil {
		return err
	}
	if a.States, err = state.New(a.Shards, a.Stores); err != nil {
		return err
	}
	var digest *load.Digest
	if o.Digest {
		digest = load.NewDigest(o.File)
	}
	began := time.Now()
	if a.Weights, err = load.Load(ctx, a.Shards, o.Plan, a.Workers.Pool, load.Options{Groups: a.Workers.Grouping(),
		Progress: o.Progress, Digest: digest, Memory: o.Memory, Turns: o.Turns}); err != nil {
		return err
	}
	if digest != nil {
		a.digest = contentDigest(o.File, digest)
	}
	a.Packing = time.Since(began)
	if a.Buffers, err = a.NewBuffers(); err != nil {
		return err
	}
	if err := a.Workers.touch(ctx, a.turns, a.KV.Memory); err != nil {
		return err
	}
	if a.States != nil {
		if err := a.Workers.touch(ctx, a.turns, func(int) *mem.Buffer { return a.States.Memory() }); err != nil {
			return err
		}
	}
	return a.Touch(ctx, a.Buffers)
}

// openShared is Open over the weights of another assembly. Only one of both may run at a time,
// since they have one set of activations.
func openShared(o *Options) (*Assembly, error) {
	with := o.SharedWeights
	if !SharesWeights(with.Plan, o.Plan) {
		return nil, errors.New("the plans divide or compute weights differently and cannot share them; " +
			"open the second with a separate copy")
	}
	a := *with
	a.sharedWeights, a.Plan, a.Packing, a.sync = with, o.Plan, 0, o.Sync
	a.Workers, a.ownWorkers = o.Workers, o.Workers == nil
	a.sharesKV = a.Plan.KV == with.Plan.KV && a.Plan.Attention == with.Plan.Attention
	var err error
	if !a.sharesKV {
		if a.KV, err = attention.NewKVStores(a.Shards, a.Plan, a.Stores, o.Memory); err != nil {
			return nil, err
		}
	}
	if a.Workers == nil {
		a.Workers, err = o.newWorkers()
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &a, nil
}

// discard returns the pages of all buffers that belong to the assembly to the system, in pieces, so
// that nothing is left for a long system call.
func (a *Assembly) discard() {
	var list []*mem.Buffer
	if !a.sharesKV {
		for r := range a.KV {
			list = append(list, a.KV.Memory(r))
		}
	}
	if a.sharedWeights == nil {
		if a.Buffers != nil {
			list = append(list, a.Buffers.memory...)
		}
		if a.States != nil {
			list = append(list, a.States.Memory())
		}
		if a.Weights != nil {
			for r := range a.Weights.Ranks() {
				list = append(list, a.Weights.Memory(r))
			}
		}
	}
	mem.Discard(background.In(a.turns), list...)
}

// NewCache returns an idle bookkeeping of the KV cache, for callers without a scheduler.
func (a *Assembly) NewCache() *kvcache.Cache { return kvcache.New(a.rows, a.Stores) }

// Rows returns the most rows of a forward.
func (a *Assembly) Rows() int { return a.rows }

// NewBuffers allocates activations of the same sizes as Buffers, for a forward that runs while
// another one is halted.
func (a *Assembly) NewBuffers() (*Buffers, error) {
	k := a.Weights.QuantizedK()
	path := func(i int) []microkernel.Compute { return []microkernel.Compute{a.Weights.At(0, i).Compute} }
	k.AddHeads(a.Model, path)
	return newBuffers(a.Shards, a.rows, a.logits, k)
}

// FreeBuffers frees activations of NewBuffers, in pieces.
func (a *Assembly) FreeBuffers(b *Buffers) error {
	mem.Discard(background.In(a.turns), b.memory...)
	return b.Free()
}

// Touch faults in the pages of activations, so that no request waits for that. It must not be
// called inside pool.Pool.Lead.
func (a *Assembly) Touch(ctx context.Context, b *Buffers) error {
	return a.Workers.touch(ctx, a.turns, b.Memory)
}

// Compile prepares a phase of a plan that shares the weights of this assembly, to run on its
// workers or on others over the same PUs.
func (a *Assembly) Compile(phase *plans.Phase, on *Workers) (*Executor, error) {
	return newExecutor(executorConfig{Shards: a.Shards, Weights: a.Weights, KV: a.KV, States: a.States,
		Buffers: a.Buffers, Workers: on, Sync: a.sync, Phase: phase, Attention: a.Plan.Attention,
		Context: a.context, Pieces: background.In(a.turns)})
}

// Close frees everything except the workers of Options.Workers and the memory of SharedWeights. Its
// executors must be closed before.
func (a *Assembly) Close() (err error) {
	switch {
	case a.Workers != nil && a.ownWorkers:
		a.Workers.Close()
	case a.Workers != nil:
		a.Workers.Pool.Gather()
	}
	a.discard()
	if a.KV != nil && !a.sharesKV {
		err = a.KV.Free()
	}
	if a.sharedWeights != nil {
		return err
	}
	if a.Buffers != nil {
		err = errors.Join(err, a.Buffers.Free())
	}
	err = errors.Join(err, a.States.Free())
	if a.Weights != nil {
		err = errors.Join(err, a.Weights.Free())
	}
	return err
}
