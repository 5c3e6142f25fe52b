package kernels

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure/spread"
	"sandwich/tuner/search"
)

// HeterogeneousRow is one product on heterogeneous workers: divided by throughput as in serving, or
// handed out in chunks, compared with the sum of what each worker computes on products of its own
// while the others do the same. That sum is the upper bound of a division. Ratios are medians of
// interleaved rounds with the 95 % interval of the median. Its JSON is stable.
type HeterogeneousRow struct {
	N       int       `json:"N"`
	K       int       `json:"K"`
	M       int       `json:"M"`
	Type    string    `json:"type"`
	Compute string    `json:"compute"`
	ISAs    []string  `json:"isas"`   // by worker
	Divided float64   `json:"gflops"` // at the median
	Chunks  float64   `json:"chunks_gflops"`
	Alone   []float64 `json:"alone_gflops"` // by worker
	Tasks   float64   `json:"chunks_each"`  // chunks per worker
	Rounds  int       `json:"rounds"`

	Share     float64 `json:"of_sum"` // Divided over the sum of Alone
	ShareLow  float64 `json:"of_sum_low"`
	ShareHigh float64 `json:"of_sum_high"`
	Over      float64 `json:"over_chunks"` // Divided over Chunks
	OverLow   float64 `json:"over_chunks_low"`
	OverHigh  float64 `json:"over_chunks_high"`
}

// learning is the time for which products run before they are timed, so that the throughput model
// has converged.
const learning = 300 * time.Millisecond

// TimeHeterogeneous times single products on heterogeneous workers and calls visit with each row.
// `sandwich bench gemm --isa 1=avx2` prints them.
func TimeHeterogeneous(ctx context.Context, o ProductOptions, visit func(HeterogeneousRow)) error {
	return onWorkers(o, func(w *exec.Workers, l *pool.Leader) error {
		for _, weight := range o.Plan.Weights {
			size := productSize(weight.WeightKey, o)
			size.Ranks = w.Pool.Size() // a separate C for each
			b, err := NewGemmBench(ctx, l, w, size, o.Seed)
			if err != nil {
				return err
			}
			for _, m := range o.Rows {
				var row HeterogeneousRow
				if row, err = b.timeHeterogeneous(w, weight, m, o); err != nil {
					err = fmt.Errorf("%s with %d rows: %w", weight.WeightKey, m, err)
					break
				}
				visit(row)
			}
			if b.Free(); err != nil {
				return err
			}
		}
		return nil
	})
}

// heterogeneous is a product under measurement.
type heterogeneous struct {
	product
	on *gemm.Heterogeneous
}

func (b *GemmBench) timeHeterogeneous(w *exec.Workers, weight plans.WeightPlan, m int, o ProductOptions) (
	r HeterogeneousRow, err error) {
	u := heterogeneous{product: product{GemmBench: b, copies: 1, times: 1}}
	if u.on, err = w.NewHeterogeneous(&o.Plan.Prefill, weight); err != nil {
		return r, err
	}
	if u.on.ScratchBytes() > b.each {
		return r, fmt.Errorf("%w: a slice needs %d bytes of scratch", search.ErrUnfit, u.on.ScratchBytes())
	}
	t := search.Trial{Key: weight.WeightKey, Compute: weight.Compute, M: m, Columns: weight.N}
	if u.layout, err = b.prepare(weight.WeightKey, t); err != nil {
		return r, err
	}
	u.ops, u.packed = b.operands(t, u.layout), gemm.Packed{Layout: u.layout, Compute: weight.Compute}
	u.panels = u.layout.Panels()
	u.copies = max(1, b.round/(u.panels*u.layout.PanelStride()))
	r = HeterogeneousRow{N: weight.N, K: weight.K, M: m, Type: weight.Type, Compute: weight.Compute.String(),
		Tasks: float64(u.on.Tasks(m)) / float64(w.Pool.Size()), Alone: make([]float64, w.Pool.Size())}
	for _, pu := range w.Pool.PUs() {
		r.ISAs = append(r.ISAs, o.Plan.ISAAt(pu).String())
	}
	return r, u.rounds(&r, o.Least, float64(2*m)*float64(weight.N)*float64(weight.K))
}

// rounds times the three ways interleaved.
func (u *heterogeneous) rounds(r *HeterogeneousRow, minimum time.Duration, flop float64) error {
	took := u.call(false)
	for began := time.Now(); time.Since(began) < learning; {
		u.on.Update()
		took = u.call(false)
	}
	u.times = max(1, min(1000, int(callSeconds/max(took, 1e-7))))
	var divided, chunks, shares, overs []float64
	alone := make([][]float64, len(r.Alone))
	const rounds = 9 // minimum for an interval
	for began := time.Now(); len(shares) < rounds || time.Since(began) < minimum; {
		u.on.Update()
		u.calls(1, false) // the separate products left other data in the caches
		a, b, sum := 0.0, 0.0, 0.0
		if len(shares)%2 == 0 {
			a, b = u.call(false), u.call(true)
		} else {
			b, a = u.call(true), u.call(false)
		}
		for i, cells := range u.alone() {
			alone[i] = append(alone[i], 2*cells*float64(r.K))
			sum += alone[i][len(shares)]
		}
		divided, chunks = append(divided, a), append(chunks, b)
		shares, overs = append(shares, flop/a/sum), append(overs, b/a)
		if err := context.Cause(u.ctx); err != nil {
			return err
		}
	}
	r.Rounds = len(shares)
	r.Divided, r.Chunks = flop/spread.Summarize(divided).Median/1e9, flop/spread.Summarize(chunks).Median/1e9
	for i := range alone {
		r.Alone[i] = spread.Summarize(alone[i]).Median / 1e9
	}
	r.Share, r.Over = spread.Summarize(shares).Median, spread.Summarize(overs).Median
	r.ShareLow, r.ShareHigh = spread.MedianInterval(shares)
	r.OverLow, r.OverHigh = spread.MedianInterval(overs)
	return nil
}

// call returns the seconds of one product, from as many as make a sample.
func (u *heterogeneous) call(chunks bool) float64 { return u.calls(u.times, chunks) }

// calls computes the product times times, each with the next weights of the round, and returns the
// seconds of one.
func (u *heterogeneous) calls(times int, chunks bool) float64 {
	began := time.Now()
	u.lead.Run(func(w *pool.Worker) {
		packed, ops, scratch := u.operandsOf(w, 0)
		for i := range times {
			packed.Data = u.weightsAt(i, packed.Layout)
			u.on.Work(w, &u.next[0], scratch, &ops, chunks)
			w.Barrier()
		}
	})
	seconds := time.Since(began).Seconds() / float64(times)
	u.at = (u.at + times) % u.copies
	return seconds
}

// alone returns the rate of each worker in elements of C per second, while each works on its own
// product.
func (u *heterogeneous) alone() []float64 {
	out := make([]float64, len(u.next))
	var left atomic.Int32 // workers that have not finished a product
	left.Store(int32(len(out)))
	u.lead.Run(func(w *pool.Worker) {
		packed, ops, scratch := u.operandsOf(w, w.Index())
		packed.Data = u.weightsAt(w.Index(), packed.Layout)
		cells, took := u.on.Alone(w, scratch, &ops, func(tasks, total int) bool {
			if tasks == total {
				left.Add(-1)
			}
			return left.Load() == 0
		})
		out[w.Index()] = float64(cells) / took.Seconds()
	})
	u.at = (u.at + len(out)) % u.copies
	return out
}

// operandsOf returns a worker's own copies of the operands of a product, with C number i.
func (u *heterogeneous) operandsOf(w *pool.Worker, i int) (*gemm.Packed, gemm.Operands, unsafe.Pointer) {
	packed, ops := u.packed, u.ops
	ops.W, ops.C = &packed, unsafe.Add(ops.C, i*(u.output.Len()/len(u.next)/cacheLine*cacheLine))
	return &packed, ops, unsafe.Add(u.scratch.Pointer(), w.Index()*u.each)
}

// weightsAt returns the weights of the i-th product from here in the round.
func (u *heterogeneous) weightsAt(i int, l microkernel.Layout) unsafe.Pointer {
	return unsafe.Add(u.weights.Pointer(), (u.at+i)%u.copies*u.panels*l.PanelStride())
}
