package kernels

import (
	"context"
	"fmt"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/tuner/search"
)

// ProductOptions configure TimeProducts.
type ProductOptions struct {
	Plan  *plans.Plan // its prefill PUs and schedules; every weight of its tables is timed
	Rows  []int       // values of M
	Cold  bool        // each call reads other weights, as in serving; otherwise the same ones
	Round int         // bytes of weights through which cold calls cycle; 0: 256 MiB
	Least time.Duration
	Seed  uint64
}

// ProductTime is one matrix product C[M,N] = A[M,K] W[N,K]^T with the seconds of each call.
type ProductTime struct {
	Key      plans.WeightKey
	Compute  microkernel.Compute
	M        int
	Schedule plans.Schedule
	Threads  int
	Seconds  []float64
}

// TimeProducts times single products on the GEMM, packed weights and pinned workers that serve
// (rule 2), and calls visit with each. `sandwich bench gemm` prints them.
func TimeProducts(ctx context.Context, o ProductOptions, visit func(ProductTime)) error {
	return onWorkers(o, func(w *exec.Workers, l *pool.Leader) error { return timeProducts(ctx, o, w, l, visit) })
}

// onWorkers runs fn on the thread that leads the workers of the plan's prefill PUs.
func onWorkers(o ProductOptions, fn func(w *exec.Workers, l *pool.Leader) error) error {
	w := exec.PlanWorkers(o.Plan)
	w.PUs, w.Ranks = o.Plan.Prefill.PUs.Slice(), nil // all of them on each product
	workers, err := exec.NewWorkers(w)
	if err != nil {
		return err
	}
	defer workers.Close()
	workers.Pool.Lead(func(l *pool.Leader) { err = fn(workers, l) })
	return err
}

// coldBytes is the default number of bytes through which cold products cycle.
const coldBytes = 256 << 20

func timeProducts(ctx context.Context, o ProductOptions, w *exec.Workers, l *pool.Leader,
	visit func(ProductTime)) error {
	for _, t := range o.Plan.Prefill.Tables {
		if t.Class != "" { // see TimeHeterogeneous
			continue
		}
		b, err := NewGemmBench(ctx, l, w, productSize(t.WeightKey, o), o.Seed)
		if err != nil {
			return err
		}
		err = b.timeRows(t.WeightKey, o, visit)
		b.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

// productSize returns the sizes of the operands of one weight's products.
func productSize(key plans.WeightKey, o ProductOptions) GemmSize {
	rows := 1
	for _, m := range o.Rows {
		rows = max(rows, m)
	}
	s := GemmSize{Spare: ScratchBytes, Copy: PackedBytes(key), Input: rows * mem.RowStride(key.K),
		Cells: rows * mem.RowStride(key.N)}
	s.Round = s.Copy
	if o.Cold {
		s.Round = max(2*s.Copy, o.Round)
		if o.Round == 0 {
			s.Round = max(2*s.Copy, coldBytes)
		}
	}
	if w, ok := o.Plan.Weight(key); ok {
		s.Rounded = RoundedBytes(w.Compute, rows, key.K)
	}
	return s
}

func (b *GemmBench) timeRows(key plans.WeightKey, o ProductOptions, visit func(ProductTime)) error {
	w, ok := o.Plan.Weight(key)
	if !ok {
		return fmt.Errorf("the plan has no weight %s", key)
	}
	for _, m := range o.Rows {
		schedule, ok := o.Plan.Prefill.Lookup(key, m)
		if !ok {
			return fmt.Errorf("the plan has no schedule for %s", key)
		}
		sample, err := b.Time(search.Trial{Key: key, Compute: w.Compute, M: m, Columns: key.N, Schedule: schedule,
			Limit: search.Limit{MinReps: 5, MaxReps: 2000, Time: o.Least}})
		if err != nil {
			return fmt.Errorf("%s with %d rows under %s: %w", key, m, schedule, err)
		}
		visit(ProductTime{Key: key, Compute: w.Compute, M: m, Schedule: schedule, Threads: o.Plan.Prefill.PUs.Count(),
			Seconds: sample.Seconds})
	}
	return nil
}
