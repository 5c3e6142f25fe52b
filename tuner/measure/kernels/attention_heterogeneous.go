package kernels

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure/spread"
)

// HeterogeneousAttentionRow is the attention of one layer on heterogeneous workers, compared with
// the sum of what each worker does on attention of its own while the others do the same. That sum
// is the upper bound of sharing the work. The ratio is the median of interleaved rounds with its 95
// % interval. Its JSON is stable.
type HeterogeneousAttentionRow struct {
	Test    string    `json:"test"` // decode, or prefill: the last chunk of a prompt
	KV      string    `json:"kv"`
	By      string    `json:"by"`
	HeadDim int       `json:"head_dim"`
	KVHeads int       `json:"kv_heads"`
	Group   int       `json:"group"`
	Context int       `json:"context"`
	Batch   int       `json:"batch"`
	ISAs    []string  `json:"isas"`       // by worker
	Seconds float64   `json:"med_s"`      // of all together
	Alone   []float64 `json:"alone_of_s"` // by worker: the part that each does separately in that time
	Rounds  int       `json:"rounds"`

	Share     float64 `json:"of_sum"` // the rate together over the sum of the separate rates
	ShareLow  float64 `json:"of_sum_low"`
	ShareHigh float64 `json:"of_sum_high"`
}

// TimeHeterogeneousAttention times attention on the heterogeneous workers of a plan and calls visit
// with each row. `sandwich bench attention --isa 1=avx2` prints them.
func TimeHeterogeneousAttention(ctx context.Context, plan *plans.Plan, o AttentionOptions,
	visit func(HeterogeneousAttentionRow)) error {
	b, err := newAttentionBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.free()
	return onWorkers(ProductOptions{Plan: plan}, func(w *exec.Workers, l *pool.Leader) error {
		b.lead = l
		b.kv.FillRandom(w.Vec, b.Seed)
		isas := []microkernel.ISA{plan.ISAOf("")}
		for _, c := range plan.Classes {
			isas = append(isas, c.ISA)
		}
		for _, group := range b.Groups {
			u, err := newHeterogeneousAttention(b, isas, group)
			if err == nil {
				err = u.time(plan, visit)
			}
			u.free()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// heterogeneousAttention is the attention under measurement, of all workers and of each.
type heterogeneousAttention struct {
	*attentionBench
	group    int
	together *attention.Attention
	single   []*attention.Attention // by worker, which does all the work
	own      *mem.Buffer            // the output of each worker
}

func newHeterogeneousAttention(b *attentionBench, isas []microkernel.ISA,
	group int) (u *heterogeneousAttention, err error) {
	u = &heterogeneousAttention{attentionBench: b, group: group}
	kind, n := attention.Shape{Groups: []int{group}, Dot: b.Dot}, b.PUs.Count()
	if u.together, err = attention.New(isas, b.kv, kind, n, n); err != nil {
		return u, err
	}
	for range n {
		a, err := attention.New(isas, b.kv, kind, n, 1)
		if err != nil {
			return u, err
		}
		u.single = append(u.single, a)
	}
	u.own, err = mem.Alloc(4*n*b.max*b.stride, mem.Options{Node: mem.AnyNode, Huge: true})
	return u, err
}

func (u *heterogeneousAttention) free() {
	for _, a := range append(u.single, u.together) {
		if a != nil {
			a.Free()
		}
	}
	if u.own != nil {
		u.own.Free()
	}
}

func (u *heterogeneousAttention) time(plan *plans.Plan, visit func(HeterogeneousAttentionRow)) error {
	one := func(test string, context int, spans func() []kvcache.Span) error {
		r := HeterogeneousAttentionRow{Test: test, KV: u.KV.String(), By: u.Dot.String(), HeadDim: u.HeadDim,
			KVHeads: u.KVHeads, Group: u.group, Context: context, Batch: u.Batch, Alone: make([]float64, u.PUs.Count())}
		for pu := range u.PUs.All() {
			r.ISAs = append(r.ISAs, plan.ISAAt(pu).String())
		}
		if err := u.rounds(&r, spans); err != nil {
			return err
		}
		visit(r)
		return nil
	}
	for _, n := range u.Decode {
		if err := one("decode", n, func() []kvcache.Span { return u.window(n) }); err != nil {
			return err
		}
	}
	for _, n := range u.Prefill {
		chunk := u.lastChunk(n)
		u.layer = 0
		if err := one("prefill", n, func() []kvcache.Span { return chunk }); err != nil {
			return err
		}
	}
	return nil
}

// lastChunk returns the last chunk of a prompt.
func (b *attentionBench) lastChunk(tokens int) []kvcache.Span {
	table := make([]kvcache.BlockID, kvcache.BlocksFor(tokens))
	for j := range table {
		table[j] = kvcache.BlockID(j)
	}
	rows := min(b.Chunk, tokens)
	return []kvcache.Span{{Rows: rows, Pos: tokens - rows, Tables: kvcache.Tables{table}}}
}

// rounds times both ways interleaved, on the spans that spans returns for each call.
func (u *heterogeneousAttention) rounds(r *HeterogeneousAttentionRow, spans func() []kvcache.Span) error {
	u.call(spans) // warm-up
	var seconds, shares []float64
	alone := make([][]float64, len(r.Alone))
	const rounds = 9 // minimum for an interval
	for began := time.Now(); len(shares) < rounds || time.Since(began) < u.Least; {
		took, sum := u.call(spans), 0.0
		for i, rate := range u.alone(spans) {
			alone[i] = append(alone[i], rate*took)
			sum += rate
		}
		seconds, shares = append(seconds, took), append(shares, 1/took/sum)
		if err := context.Cause(u.ctx); err != nil {
			return err
		}
	}
	r.Rounds, r.Seconds = len(shares), spread.Summarize(seconds).Median
	for i := range alone {
		r.Alone[i] = spread.Summarize(alone[i]).Median
	}
	r.Share = spread.Summarize(shares).Median
	r.ShareLow, r.ShareHigh = spread.MedianInterval(shares)
	return nil
}

// call runs attention on all workers for at least callSeconds and returns the seconds of one run.
func (u *heterogeneousAttention) call(spans func() []kvcache.Span) float64 {
	q, out := u.output()
	total, steps := time.Duration(0), 0
	for ; steps == 0 || total.Seconds() < callSeconds; steps++ {
		next := spans()
		began := time.Now()
		u.together.Begin(next)
		u.lead.Run(func(w *pool.Worker) {
			u.together.Run(w, u.layer, u.scale(), q, out)
			w.Barrier()
		})
		total += time.Since(began)
	}
	return total.Seconds() / float64(steps)
}

// alone returns how many times per second each worker does the whole work while all of them do.
func (u *heterogeneousAttention) alone(spans func() []kvcache.Span) []float64 {
	q, _ := u.output()
	rates := make([]float64, len(u.single))
	layers := make([]int, len(u.single))
	for i, a := range u.single {
		a.Begin(spans())
		layers[i] = u.layer
	}
	var left atomic.Int32 // workers that have not finished once
	left.Store(int32(len(rates)))
	u.lead.Run(func(w *pool.Worker) {
		i := w.Index()
		out := tp.Rows{Base: (*float32)(unsafe.Add(u.own.Pointer(), 4*i*u.max*u.stride)), Stride: u.stride}
		times, took := u.single[i].Alone(w, layers[i], u.scale(), q, out, func(units, total int) bool {
			if units == total {
				left.Add(-1)
			}
			return left.Load() == 0
		})
		rates[i] = times / took.Seconds()
	})
	return rates
}
