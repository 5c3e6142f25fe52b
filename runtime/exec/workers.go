package exec

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/allreduce"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// WorkerOptions say which threads run ops, and by which code.
type WorkerOptions struct {
	PUs      []int           // one worker each
	ISA      microkernel.ISA // of the work outside GEMM
	Plan     *plans.Plan     // whose kernels are built at once; nil: each when it is first asked for
	Ranks    []plans.Rank    // that the workers are divided among; none or one: they work together
	Spin     time.Duration   // pool.Options.Spin
	Unpinned bool            // bound to nothing: there may be more of them than PUs
}

// PlanWorkers are the workers that a plan is served by.
func PlanWorkers(plan *plans.Plan) WorkerOptions {
	return WorkerOptions{PUs: plan.Threads(), ISA: plan.ISAOf(""), Plan: plan, Ranks: plan.Ranks}
}

// Workers run ops: the threads of a pool, the code that they call, and their groups where a model
// is cut. Open makes its own or is given them; kernels are timed on them without a model, too.
type Workers struct {
	Pool    *pool.Pool
	Kernels *Kernels // of the main class
	classes []class  // by pool.Worker.Class
	unlike  bool     // workers differ: what they do is timed, and products are divided by that
	ranks   []plans.Rank
	groups  *Groups // nil with one rank
}

// NewWorkers builds the code, which refuses a host that cannot run it, and starts the threads.
func NewWorkers(o WorkerOptions) (*Workers, error) {
	kernels, err := newKernels(o.ISA, o.Plan)
	if err != nil {
		return nil, err
	}
	w := &Workers{Kernels: kernels, ranks: o.Ranks}
	if w.classes, err = newClasses(kernels, o.Plan); err != nil {
		return nil, err
	}
	return w.start(o.PUs, pool.Options{Pin: !o.Unpinned, Spin: o.Spin, Class: w.classOf(o.PUs, o.Plan)})
}

// start makes the threads.
func (w *Workers) start(pus []int, o pool.Options) (_ *Workers, err error) {
	if o.Slow, err = slowWorkers(os.Getenv(slowVariable), len(pus)); err != nil {
		return nil, err
	}
	w.unlike = len(w.classes) > 1 || o.Slow != nil
	if w.Pool, err = pool.New(pus, o); err != nil {
		return nil, err
	}
	if w.groups, err = newGroups(w.Pool, vecsOf(w.classes), w.ranks); err != nil {
		w.Pool.Close()
		return nil, err
	}
	return w, nil
}

// Unbound starts as many workers with the same code and the same ranks that are bound to no PU:
// what binding is worth is measured against them.
func (w *Workers) Unbound() (*Workers, error) {
	free := &Workers{Kernels: w.Kernels, classes: w.classes, ranks: w.ranks}
	return free.start(w.Pool.PUs(), pool.Options{Class: w.Pool.Classes()})
}

// Close ends the threads.
func (w *Workers) Close() { w.Pool.Close() }

// Grouping divides the workers among their ranks; nil where there is one.
func (w *Workers) Grouping() *pool.Grouping {
	if w.groups == nil {
		return nil
	}
	return w.groups.grouping
}

// On returns the workers of some PUs, ascending.
func (w *Workers) On(pus []int) ([]int, error) {
	all := w.Pool.PUs()
	out := make([]int, 0, len(pus))
	for _, pu := range pus {
		i := slices.Index(all, pu)
		if i < 0 {
			return nil, fmt.Errorf("PU %d is not among those that have a worker (%v)", pu, all)
		}
		out = append(out, i)
	}
	slices.Sort(out)
	return out, nil
}

// Ranks lists the workers of each rank.
func (w *Workers) Ranks() [][]int { return rankWorkers(w.Pool.PUs(), w.ranks) }

// Groups are the thread groups of a pool, one a rank, and what their gathers synchronize by. The
// executors that run on that pool share them.
type Groups struct {
	grouping *pool.Grouping
	sum      *allreduce.Sum
}

// newGroups divides the workers of a pool by the ranks that their PUs belong to; nil where there is
// one rank.
func newGroups(p *pool.Pool, vecs []*microkernel.Vec, ranks []plans.Rank) (*Groups, error) {
	if len(ranks) <= 1 {
		return nil, nil
	}
	for _, pu := range p.PUs() {
		if !slices.ContainsFunc(ranks, func(r plans.Rank) bool { return slices.Contains(r.PUs, pu) }) {
			return nil, fmt.Errorf("PU %d works for no rank of the plan", pu)
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

// rankWorkers lists the workers of each rank, for workers on the given PUs.
func rankWorkers(pus []int, ranks []plans.Rank) [][]int {
	out := make([][]int, len(ranks))
	for w, pu := range pus {
		for r := range ranks {
			if slices.Contains(ranks[r].PUs, pu) {
				out[r] = append(out[r], w)
				break
			}
		}
	}
	return out
}

// touch faults in a buffer of each rank, by the rank's own workers, so that no request waits for
// that and that the pages of buffers without a node come to lie near who uses them. Where ctx ends
// before that is done, the error is its cause. Not to be called inside Lead.
func (w *Workers) touch(ctx context.Context, memory func(rank int) *mem.Buffer) error {
	const (
		hugePage = 2 << 20
		step     = 32 * hugePage // between two looks at ctx: milliseconds
	)
	grouping := w.Grouping()
	w.Pool.Run(func(worker *pool.Worker) {
		rank, id, n := 0, worker.ID(), worker.N()
		if grouping != nil {
			worker.Use(grouping)
			rank, id, n = worker.Group().ID(), worker.GroupRank(), worker.Group().Size()
		}
		b := memory(rank)
		lo, hi := pool.Split(b.Len(), n, id, hugePage)
		for ; lo < hi && ctx.Err() == nil; lo += step {
			b.Touch(lo, min(lo+step, hi))
		}
	})
	return context.Cause(ctx)
}
