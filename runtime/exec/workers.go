package exec

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/allreduce"
	"sandwich/runtime/background"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/runtime/pool/poolset"
)

// WorkerOptions say which threads run ops and which code they run.
type WorkerOptions struct {
	PUs      []int           // one worker each
	ISA      microkernel.ISA // of the ops other than products
	Plan     *plans.Plan     // whose kernels are built at once; nil: each on first use
	Ranks    []plans.Rank    // among which the workers are divided; none or one: they work together
	Spin     time.Duration   // pool.Options.Spin
	Unpinned bool            // not bound to PUs, so there may be more of them than PUs
	Pools    *poolset.Set    // from which the threads come; nil: they are not shared
	Pieces   background.Run  // builds the kernels
}

// PlanWorkers returns the options of the workers that serve a plan.
func PlanWorkers(plan *plans.Plan) WorkerOptions {
	return WorkerOptions{PUs: plan.Threads(), ISA: plan.ISAOf(""), Plan: plan, Ranks: plan.Ranks}
}

// Workers are the threads of a pool, the code that they run, and their groups if the model is
// divided among ranks. Kernels can be timed on them without a model.
type Workers struct {
	Pool *pool.Pool
	Vec  *microkernel.Vec // vector kernels of the main worker kind

	kinds         []gemm.Kind // by pool.Worker.Class
	heterogeneous bool        // products are timed and divided by throughput
	ranks         []plans.Rank
	groups        *Groups      // nil with one rank
	use           *poolset.Use // of Pool, which others may use too; nil: Pool belongs to these workers
}

// NewWorkers builds the code and starts the threads. A host that cannot run the code is an error.
func NewWorkers(o WorkerOptions) (*Workers, error) {
	kinds, err := gemm.NewKinds(o.ISA, o.Plan, o.Pieces)
	if err != nil {
		return nil, err
	}
	w := &Workers{Vec: kinds[0].Vec, kinds: kinds, ranks: o.Ranks}
	return w.start(o.PUs, o.Pools, pool.Options{Pin: !o.Unpinned, Spin: o.Spin, Class: w.kindOf(o.PUs, o.Plan)})
}

// start starts the threads, or takes those of a shared pool.
func (w *Workers) start(pus []int, pools *poolset.Set, o pool.Options) (_ *Workers, err error) {
	if o.Slow, err = slowWorkers(os.Getenv(slowVariable), len(pus)); err != nil {
		return nil, err
	}
	w.heterogeneous = len(w.kinds) > 1 || o.Slow != nil
	if pools == nil {
		w.Pool, err = pool.New(pus, o)
	} else if w.use, err = pools.Open(pus, o); err == nil {
		w.Pool = w.use.Pool
	}
	if err != nil {
		return nil, err
	}
	if w.groups, err = newGroups(w.Pool, vecsOf(w.kinds), w.ranks); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Unbound starts as many workers with the same code and ranks that are not bound to PUs, to measure
// the effect of binding.
func (w *Workers) Unbound() (*Workers, error) {
	free := &Workers{Vec: w.Vec, kinds: w.kinds, ranks: w.ranks}
	return free.start(w.Pool.PUs(), nil, pool.Options{Class: w.Pool.Classes()})
}

// Close ends the threads, or the use of a shared pool. It must not be called while a leader of a
// shared pool has it.
func (w *Workers) Close() {
	if w.use == nil {
		w.Pool.Close()
		return
	}
	w.Pool.Gather()
	if w.groups != nil {
		w.groups.sum.Close(w.Pool)
	}
	w.use.Close()
}

// Lead runs fn on a thread that is worker 0, while it has the pool if other users share that: see
// pool.Pool.LeadShared.
func (w *Workers) Lead(fn func(l *pool.Leader)) {
	if w.use == nil {
		w.Pool.Lead(fn)
		return
	}
	w.Pool.LeadShared(fn)
}

// Moves reports whether this user of the pool moves its workers to other PUs.
func (w *Workers) Moves() bool { return w.use == nil || w.use.First() }

// Grouping returns the division of the workers among ranks; nil with one rank.
func (w *Workers) Grouping() *pool.Grouping {
	if w.groups == nil {
		return nil
	}
	return w.groups.grouping
}

// On returns the workers of some PUs in ascending order. A PU without a worker is an error.
func (w *Workers) On(pus []int) ([]int, error) {
	all := w.Pool.PUs()
	out := make([]int, 0, len(pus))
	for _, pu := range pus {
		i := slices.Index(all, pu)
		if i < 0 {
			return nil, fmt.Errorf("PU %d has no worker; use some of %v", pu, all)
		}
		out = append(out, i)
	}
	slices.Sort(out)
	return out, nil
}

// Ranks returns the workers of each rank.
func (w *Workers) Ranks() [][]int { return rankWorkers(w.Pool.PUs(), w.ranks) }

// kindOf returns the worker kind of each PU as an index of w.kinds.
func (w *Workers) kindOf(pus []int, plan *plans.Plan) []int {
	out := make([]int, len(pus))
	for i, pu := range pus {
		for j := range w.kinds[1:] {
			if plan.ClassOf(pu) == w.kinds[1+j].Name {
				out[i] = 1 + j
			}
		}
	}
	return out
}

// vecsOf returns the vector kernels of each kind.
func vecsOf(kinds []gemm.Kind) (vecs []*microkernel.Vec) {
	for _, k := range kinds {
		vecs = append(vecs, k.Vec)
	}
	return vecs
}

// isasOf returns the instruction set of the vector kernels of each kind.
func isasOf(kinds []gemm.Kind) (isas []microkernel.ISA) {
	for _, k := range kinds {
		isas = append(isas, k.Vec.ISA())
	}
	return isas
}

// Heterogeneous reports whether the workers are of several kinds, or SANDWICH_SLOW throttles some.
func (w *Workers) Heterogeneous() bool { return w.heterogeneous }

// NewHeterogeneous compiles the schedules that a phase has for a weight shape, for each worker
// kind.
func (w *Workers) NewHeterogeneous(phase *plans.Phase, weight plans.WeightPlan) (*gemm.Heterogeneous, error) {
	return gemm.NewHeterogeneous(w.kinds, w.Pool.Classes(), phase, weight)
}

// Groups are the thread groups of a pool, one per rank, and the flags of their gathers. All
// executors on the pool share them.
type Groups struct {
	grouping *pool.Grouping
	sum      *allreduce.Sum
}

// newGroups divides the workers of a pool among the ranks of their PUs. It returns nil for one
// rank.
func newGroups(p *pool.Pool, vecs []*microkernel.Vec, ranks []plans.Rank) (*Groups, error) {
	if len(ranks) <= 1 {
		return nil, nil
	}
	for _, pu := range p.PUs() {
		if !slices.ContainsFunc(ranks, func(r plans.Rank) bool { return r.PUs.Contains(pu) }) {
			return nil, fmt.Errorf("PU %d belongs to no rank of the plan", pu)
		}
	}
	members := rankWorkers(p.PUs(), ranks)
	for r, list := range members {
		if len(list) == 0 {
			return nil, fmt.Errorf("rank %d of the plan has no worker", r)
		}
	}
	grouping, err := p.NewGrouping(members)
	if err != nil {
		return nil, err
	}
	return &Groups{grouping, allreduce.New(p, vecs, len(ranks))}, nil
}

// rankWorkers returns the workers of each rank, for workers on the given PUs.
func rankWorkers(pus []int, ranks []plans.Rank) [][]int {
	out := make([][]int, len(ranks))
	for w, pu := range pus {
		for r := range ranks {
			if ranks[r].PUs.Contains(pu) {
				out[r] = append(out[r], w)
				break
			}
		}
	}
	return out
}

// touch faults in the pages of a buffer of each rank by the rank's own workers, so that no request
// waits for it and pages without a node are near their users. turns may be nil. When ctx ends, the
// error is its cause. It must not be called inside pool.Pool.Lead.
func (w *Workers) touch(ctx context.Context, turns background.Turns, memory func(rank int) *mem.Buffer) error {
	const hugePage = 2 << 20
	grouping := w.Grouping()
	touched := make([]int, w.Pool.Size()) // bytes, by worker
	part := func() (more bool) {
		var rest atomic.Bool
		w.Pool.Run(func(worker *pool.Worker) {
			done := &touched[worker.ID()]
			rank, id, n := 0, worker.ID(), worker.N()
			if grouping != nil {
				worker.Use(grouping)
				rank, id, n = worker.Group().ID(), worker.GroupRank(), worker.Group().Size()
			}
			b := memory(rank)
			lo, hi := pool.Split(b.Len(), n, id, hugePage)
			for lo += *done; lo < hi && ctx.Err() == nil; lo += hugePage {
				b.Touch(lo, min(lo+hugePage, hi))
				*done += hugePage
				if turns != nil && (rest.Load() || turns.Preempted()) {
					rest.Store(true)
					return
				}
			}
		})
		return rest.Load()
	}
	for more := true; more && ctx.Err() == nil; {
		if turns != nil {
			turns.Acquire()
		}
		more = part()
		if turns != nil {
			turns.Release()
		}
	}
	return context.Cause(ctx)
}
