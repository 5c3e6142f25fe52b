package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Options say what Open assembles, and how much it must hold at once.
type Options struct {
	File      *gguf.File
	Plan      *plans.Plan // how weights are cut and computed, and what the KV cache holds
	Blocks    int         // KV blocks of 64 positions, of all sequences together
	Least     int         // of them, those there must be where all take more than half of the free memory; 0: all
	Sequences int         // that hold blocks at once; 1
	// StateBytes are for copies of states beside those of the sequences, of a model whose layers
	// have some: from where a text can be gone on with. 0: room for some; negative: none.
	StateBytes int64
	LogitRows  int           // most rows of a forward whose logits are wanted
	Context    int           // positions that a sequence may have; 0: what the model was trained for
	Spin       time.Duration // of the workers: pool.Options.Spin
	// they are bound to nothing, so that a plan may have more of them than this machine has PUs
	Unpinned bool
	Sync     Sync // how ranks wait for each other
	Progress func(done, total int64)

	// Workers, where they are there already, run the model instead of those that Spin and Unpinned
	// describe, and outlive the assembly. They are divided among the plan's ranks.
	Workers *Workers

	// Beside, where it is there, lends its model, weights and activations, and its KV cache where
	// both plans keep the same, in place of those that File, Blocks, Sequences, StateBytes,
	// LogitRows and Context describe. It outlives the assembly. SharesWeights says of which plans
	// it can.
	Beside *Assembly
}

// newWorkers are those that the options describe.
func (o *Options) newWorkers() (*Workers, error) {
	w := PlanWorkers(o.Plan)
	w.Spin, w.Unpinned = o.Spin, o.Unpinned
	return NewWorkers(w)
}

// Assembly is a model made ready to run: what an engine serves with and what the tuner measures
// whole forwards on are the same assembly of the same parts. Compile gives it executors.
type Assembly struct {
	Model   *model.Model
	Plan    *plans.Plan
	Shards  *Shards
	Workers *Workers
	Weights *Weights       // packed, once for every phase
	Blocks  int            // KV blocks of 64 positions, of all sequences together
	Stores  []kvcache.Spec // what layers of each kind have of them
	KV      KVStores
	States  *States  // nil where no layer has one
	Buffers *Buffers // activations of one forward
	Packing time.Duration

	sync     Sync
	rows     int // most of a forward
	logits   int // most of them whose logits are wanted
	context  int // Options.Context
	borrowed bool

	lender *Assembly // whose model, weights, activations and states these are; nil: their own
	lentKV bool      // the lender's, too
}

// Open loads the model under the plan. Errors name what does not fit: the architecture, a weight
// that the plan does not know, a kernel this host cannot run, or memory, with how much is missing.
// Loading ends with the cause of ctx soon after ctx does, and leaves nothing behind.
func Open(ctx context.Context, o Options) (*Assembly, error) {
	if o.Beside != nil {
		return openBeside(&o)
	}
	m, err := model.Load(o.File)
	if err != nil {
		return nil, err
	}
	shards, err := divideModel(m, o.Plan)
	if err != nil {
		return nil, err
	}
	a := &Assembly{Model: m, Plan: o.Plan, Shards: shards, Workers: o.Workers, borrowed: o.Workers != nil, sync: o.Sync,
		rows: o.rows(m), logits: o.LogitRows, context: o.Context}
	if m.Learned() && o.Context > m.Dims.Context {
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

func (a *Assembly) assemble(ctx context.Context, o *Options) (err error) {
	if a.Workers == nil {
		if a.Workers, err = o.newWorkers(); err != nil {
			return err
		}
	}
	if a.KV, err = newKVStores(a.Shards, o.Plan, a.Stores); err != nil {
		return err
	}
	if a.States, err = newStates(a.Shards, a.Stores); err != nil {
		return err
	}
	began := time.Now()
	if a.Weights, err = loadWeights(ctx, a.Shards, o.Plan, a.Workers, o.Progress); err != nil {
		return err
	}
	a.Packing = time.Since(began)
	if a.Buffers, err = a.NewBuffers(); err != nil {
		return err
	}
	if err := a.Workers.touch(ctx, a.KV.Memory); err != nil {
		return err
	}
	if a.States != nil {
		if err := a.Workers.touch(ctx, func(int) *mem.Buffer { return a.States.memory }); err != nil {
			return err
		}
	}
	return a.Touch(ctx, a.Buffers)
}

// NewCache makes the bookkeeping of the KV cache, all of it idle: for callers without a scheduler.
func (a *Assembly) NewCache() *kvcache.Cache { return kvcache.New(a.rows, a.Stores) }

// NewBuffers makes activations of the sizes of Buffers, for a forward that runs while another one
// is kept.
func (a *Assembly) NewBuffers() (*Buffers, error) {
	k := a.Weights.roundedK()
	path := func(i int) []microkernel.Compute { return []microkernel.Compute{a.Weights.At(0, i).Compute} }
	k.countHeads(a.Model, path)
	return newBuffers(a.Shards, a.rows, a.logits, k)
}

// Touch faults activations in, so that no request waits for that. Not to be called inside Lead.
func (a *Assembly) Touch(ctx context.Context, b *Buffers) error {
	return a.Workers.touch(ctx, b.Memory)
}

// Compile prepares a phase of any plan that cuts and computes the weights as the opened one does,
// to run on these workers: the assembly's, or others over the same PUs.
func (a *Assembly) Compile(phase *plans.Phase, on *Workers) (*Executor, error) {
	return newExecutor(executorConfig{Shards: a.Shards, Weights: a.Weights, KV: a.KV, States: a.States,
		Buffers: a.Buffers, Workers: on, Sync: a.sync, Phase: phase, Attend: a.Plan.Attention,
		Context: a.context})
}

// Close frees everything but borrowed workers and what another assembly lent. Executors over it are
// closed before.
func (a *Assembly) Close() (err error) {
	switch {
	case a.Workers != nil && !a.borrowed:
		a.Workers.Close()
	case a.Workers != nil:
		a.Workers.Pool.Gather()
	}
	if a.KV != nil && !a.lentKV {
		err = a.KV.Free()
	}
	if a.lender != nil {
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
