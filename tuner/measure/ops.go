package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure/kernels"
)

// OpRow is the time of all ops of one name in a forward, over all layers. Its JSON is stable.
type OpRow struct {
	Test    string    `json:"test"` // pp512: a prompt of 512 tokens, chunk by chunk
	Op      string    `json:"op"`   // its name without the layer
	Count   int       `json:"count"`
	Seconds float64   `json:"seconds"` // median
	Samples []float64 `json:"samples"`
	Share   float64   `json:"share"`            // of the whole
	GFLOPS  float64   `json:"gflops,omitempty"` // of products and delta rules
	// Of attention and delta rules, relative to the peak of their arithmetic.
	OfPeak float64 `json:"of_peak,omitempty"`
	Peak   float64 `json:"peak_gflops"` // of float32, interleaved with the forwards
	// Ceiling is the minimum time: that of the kernels' port throughput for products, that of the
	// peak for attention and delta rules; 0 for ops that mainly move rows.
	Ceiling float64 `json:"ceiling_seconds,omitempty"`
	// Ports has the fraction of the time for which instructions of one class would keep their ports
	// busy.
	Ports map[string]float64 `json:"ports,omitempty"`
	Model string             `json:"model"`
	Plan  string             `json:"plan"`
	CPU   string             `json:"cpu"`
}

// allOpsName is the op of the row of all ops together.
const allOpsName = "all"

// opClock records the duration of every op, from barrier to barrier of a worker.
type opClock struct {
	last time.Time
	took []time.Duration // by op
}

// begin starts a new forward; otherwise times of ops add up, as over chunks.
func (c *opClock) begin() {
	clear(c.took)
	c.last = time.Now()
}

// Passed implements exec.Gate.
func (c *opClock) Passed(next int) (halt bool) {
	now := time.Now()
	c.took[next-1] += now.Sub(c.last)
	c.last = now
	return false
}

// Ops times the ops of prompts, chunk by chunk from an empty cache, reps times, interleaved with
// the float32 peak of the workers. It must be called inside Lead, and calls step after each prompt.
func Ops(ctx context.Context, r *forward.Runner, l *pool.Leader, isa microkernel.ISA, ports *roofline.PortRates,
	tokens, reps int, step func()) ([]OpRow, error) {
	peak, err := kernels.AttentionPeak(microkernel.AttendF32, isa)
	if err != nil {
		return nil, err
	}
	attends, err := kernels.AttentionPeak(r.Plan.Attention, isa)
	if err != nil {
		return nil, err
	}
	rows, at := opRows(r.Model, tokens)
	portsOfOps(r.Model, r.Plan, rows, at, ports, tokens)
	var peaks, attention, whole []float64
	for rep := range reps + 1 {
		clock := opClock{took: make([]time.Duration, r.Ops())}
		if err := promptOps(r, l, &clock, tokens); err != nil {
			return nil, err
		}
		if step(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if rep == 0 {
			continue // warm-up
		}
		sums, all := make([]float64, len(rows)), 0.0
		for i, took := range clock.took {
			sums[at[i]] += took.Seconds()
			all += took.Seconds()
		}
		for i := range rows {
			rows[i].Samples = append(rows[i].Samples, sums[i])
		}
		whole, peaks = append(whole, all), append(peaks, kernels.PeakRate(l, peak, r.Pool().Size()))
		attention = append(attention, kernels.PeakRate(l, attends, r.Pool().Size()))
	}
	all, top := num.Median(whole), num.Median(peaks)/1e9
	for i := range rows {
		o := &rows[i]
		o.Seconds, o.Peak = num.Median(o.Samples), top
		o.Share = o.Seconds / all
		switch o.Op {
		case model.OpAttention.String():
			o.bound(num.Median(attention) / 1e9)
		case model.OpDelta.String():
			o.bound(top)
		}
		o.GFLOPS *= 1e-9 / o.Seconds
		for class := range o.Ports {
			o.Ports[class] /= o.Seconds
		}
	}
	slices.SortStableFunc(rows, func(a, b OpRow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return append(rows, allOps(rows, whole, top)), nil
}

// bound sets the row's ceiling from a peak. GFLOPS must still hold FLOP.
func (o *OpRow) bound(peak float64) {
	o.Ceiling = o.GFLOPS / 1e9 / peak
	o.OfPeak = o.Ceiling / o.Seconds
}

// allOps returns the row of all ops together, whose ceiling is the sum of theirs.
func allOps(rows []OpRow, whole []float64, peak float64) OpRow {
	all := OpRow{Op: allOpsName, Seconds: num.Median(whole), Samples: whole, Share: 1, Peak: peak}
	for _, r := range rows {
		all.Count += r.Count
		all.Ceiling += r.Ceiling
	}
	return all
}

// opRows returns a row for each name, with the FLOP of a prompt in GFLOPS, and the row index of
// each op.
func opRows(m *model.Model, tokens int) (rows []OpRow, at []int) {
	for i := range m.Ops {
		op := &m.Ops[i]
		name := op.Name
		if rest, layer := strings.CutPrefix(name, "blk."); layer {
			_, name, _ = strings.Cut(rest, ".")
		}
		k := slices.IndexFunc(rows, func(r OpRow) bool { return r.Op == name })
		if k < 0 {
			k = len(rows)
			rows = append(rows, OpRow{Op: name})
		}
		n := tokens
		if op.In == model.BufY { // of the last token only
			n = 1
		}
		rows[k].Count++
		rows[k].GFLOPS += float64(n) * cost.RowFLOP(m, op)
		if op.Kind == model.OpAttention {
			rows[k].GFLOPS += roofline.Attention(tokens, tokens, op.Attn.Window, op.Heads.Q, op.Heads.KV, op.Heads.Dim,
				0).FLOP
		}
		at = append(at, k)
	}
	return rows, at
}

// portsOfOps sets the ceilings of the products, and the seconds of each class in Ports.
func portsOfOps(m *model.Model, p *plans.Plan, rows []OpRow, at []int, ports *roofline.PortRates, tokens int) {
	workers := float64(p.Prefill.PUs.Count())
	for i := range m.Ops {
		op, row := &m.Ops[i], &rows[at[i]]
		n := tokens
		if op.In == model.BufY {
			n = 1
		}
		if op.Kind != model.OpMatMul {
			continue
		}
		for _, wi := range op.W {
			w := &m.Weights[wi]
			s, ok := p.Prefill.Lookup(plans.WeightKey{N: w.N, K: w.K, Type: w.Tensor.Type.String()}, min(n, p.Chunk))
			if !ok {
				continue
			}
			use, flop := kernels.PortsOf(ports, s, min(n, p.Chunk)), 2*float64(n)*float64(w.N)*float64(w.K)
			row.Ceiling += use.Seconds * flop / workers
			if row.Ports == nil {
				row.Ports = map[string]float64{}
			}
			for c, busy := range use.Busy {
				if busy > 0 {
					row.Ports[microkernel.InstructionClass(c).String()] += busy * flop / workers
				}
			}
		}
	}
}

// promptOps runs a prompt.
func promptOps(r *forward.Runner, l *pool.Leader, clock *opClock, tokens int) error {
	cache := r.NewCache()
	seq := cache.Open(kvcache.Salt{})
	if !cache.Reserve(seq, tokens) {
		return fmt.Errorf("the KV cache has no room for a prompt of %d tokens", tokens)
	}
	b := kvcache.Batch{}
	for pos := 0; pos < tokens; pos += r.Plan.Chunk {
		n := min(r.Plan.Chunk, tokens-pos)
		cache.Cover(seq, pos+n)
		b.Reset()
		b.Prefill = true
		for i := range n {
			b.Tokens = append(b.Tokens, int32((pos+i)*31%r.Model.Dims.Vocab))
		}
		b.AddSpan(seq, kvcache.Span{Rows: n, Pos: pos})
		if pos+n == tokens {
			b.LogitRows = append(b.LogitRows, int32(n-1))
		}
		clock.last = time.Now()
		if _, err := r.Forward(l, &b, 0, clock); err != nil {
			return err
		}
		cache.Advance(seq, n)
	}
	return nil
}
