// Package kernels times products and attention on the workers that serve. The tuner searches on the
// same bench.
package kernels

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/tuner/search"
)

// GemmBench times schedules on the GEMM that serves (rule 2): the same executor, packed weights and
// pinned pool. It implements search.Timer, for use on the thread that leads the pool.
//
// Weights are as cold as in serving: calls cycle through panels of the size of the model's weights,
// or of a size that evicts the last-level cache.
type GemmBench struct {
	ctx  context.Context
	lead *pool.Leader
	vec  *microkernel.Vec
	seed uint64

	weights *mem.Buffer // panels of the current weight shape, repeated
	round   int         // bytes of weights through which calls cycle, without the padding of the last
	filled  plans.WeightKey
	input   *mem.Buffer // rows of activations
	rounded *mem.Buffer // the quantized activations of a compute path
	output  *mem.Buffer
	scratch *mem.Buffer
	rows    int // number of filled rows of activations
	width   int // K for which they are filled
	form    microkernel.Compute
	ready   int // number of rows that are also quantized for the current compute path
	each    int // bytes of scratch per worker
	// Groups are the ranks, which run their products at the same time; nil with one rank, or for a
	// product of all workers.
	groups *pool.Grouping
	next   []pool.Counter // by rank
	at     int            // panel at which the next call starts
}

// GemmSize bounds the operands of a bench.
type GemmSize struct {
	Round   int            // bytes of weights through which calls cycle
	Copy    int            // bytes of the largest weight of a trial
	Input   int            // largest M times padded K of an activation, in float32 values
	Rounded int            // the same for quantized activations, in bytes; 0 without such weights
	Cells   int            // values of one C
	Ranks   int            // products that run at the same time; 0 counts as 1
	Groups  *pool.Grouping // groups of their workers; nil with one
	Spare   int            // bytes of scratch per worker
}

// MaxCopy bounds the weights of one trial in bytes; reading them takes milliseconds on any machine.
const MaxCopy = 256 << 20

// ScratchBytes is the scratch of a worker for widened panels: the search's limit of a million
// values with the padding of its panels.
const ScratchBytes = 4<<20 + 256<<10

// OutputCells bounds C of a trial, in values.
const OutputCells = 24 << 20

// NewGemmBench allocates the operands of trials. The error is mem.ErrNoMemory if they do not fit.
// Trials end with ctx.
func NewGemmBench(ctx context.Context, lead *pool.Leader, w *exec.Workers, s GemmSize, seed uint64) (b *GemmBench,
	err error) {
	s.Ranks = max(1, s.Ranks)
	b = &GemmBench{ctx: ctx, lead: lead, vec: w.Vec, seed: seed, round: s.Round, each: s.Spare,
		next: make([]pool.Counter, s.Ranks), groups: s.Groups}
	made := b
	defer func() {
		if err != nil {
			made.Free()
		}
	}()
	for _, x := range []struct {
		buffer **mem.Buffer
		bytes  int
	}{{&b.weights, s.Round + s.Copy}, {&b.input, 4 * s.Input}, {&b.rounded, s.Rounded},
		{&b.output, 4 * s.Cells * s.Ranks}, {&b.scratch, s.Spare * w.Pool.Size()}} {
		if *x.buffer, err = mem.Alloc(x.bytes, mem.Options{Node: mem.AnyNode, Huge: true}); err != nil {
			return nil, fmt.Errorf("kernel trials: %w", err)
		}
	}
	return b, nil
}

// Free releases the operands.
func (b *GemmBench) Free() {
	for _, x := range []*mem.Buffer{b.weights, b.input, b.rounded, b.output, b.scratch} {
		if x != nil {
			x.Free()
		}
	}
}

// Use makes each group of workers run its own product at the same time; nil makes all workers share
// one.
func (b *GemmBench) Use(groups *pool.Grouping) { b.groups = groups }

// WeightBytes returns the number of bytes of weights that the bench can hold.
func (b *GemmBench) WeightBytes() int { return b.weights.Len() }

// Prepare fills the operands for trials of up to m rows of a weight, so that the first trial does
// not include this time.
func (b *GemmBench) Prepare(key plans.WeightKey, m int, c microkernel.Compute) error {
	key.N = microkernel.PanelWidth
	_, err := b.prepare(key, search.Trial{M: m, Compute: c})
	return err
}

// callSeconds is the minimum time between two reads of the clock; shorter calls are repeated.
const callSeconds = 200e-6

// longCall is the duration from which the first call of new code is not significantly slower, and
// counts.
const longCall = 1e-3

// Time implements search.Timer.
func (b *GemmBench) Time(t search.Trial) (search.Sample, error) {
	if err := context.Cause(b.ctx); err != nil {
		return search.Sample{}, err
	}
	key := plans.WeightKey{N: t.Columns, K: t.Key.K, Type: t.Key.Type}
	g, err := gemm.New(b.vec, t.Schedule, key)
	if err != nil {
		return search.Sample{}, fmt.Errorf("%w: %w", search.ErrUnfit, err)
	}
	if g.ScratchBytes() > b.each {
		return search.Sample{}, fmt.Errorf("%w: a slice needs %d bytes of scratch", search.ErrUnfit, g.ScratchBytes())
	}
	p := product{GemmBench: b, gemm: g, copies: 1}
	if p.layout, err = b.prepare(key, t); err != nil {
		return search.Sample{}, err
	}
	p.ops = b.operands(t, p.layout)
	p.packed = gemm.Packed{Layout: p.layout, Compute: t.Compute}
	p.panels = p.layout.Panels()
	p.copies = max(1, b.round/(p.panels*p.layout.PanelStride()))
	p.times = 1
	warm := p.call() // also the first call of new code
	switch {
	case warm < callSeconds:
		p.times = min(1000, int(callSeconds/math.Max(warm, 1e-7))+1)
	case t.Limit.GiveUp > 0 && warm > 3*t.Limit.GiveUp:
		return search.Sample{Seconds: []float64{warm}, Stopped: true}, nil
	}
	return t.Limit.Repeat(func() (float64, error) {
		seconds := warm
		if warm = 0; seconds < longCall {
			seconds = p.call()
		}
		return seconds, context.Cause(b.ctx)
	})
}

// product is a trial in progress.
type product struct {
	*GemmBench
	gemm   *gemm.Gemm
	layout microkernel.Layout
	packed gemm.Packed
	ops    gemm.Operands
	panels int
	copies int
	times  int // products per call
}

// call runs the product times times, on every rank at the same time and each with the next weights
// of the round. It returns the seconds of one.
func (p *product) call() float64 {
	began := time.Now()
	ranks := len(p.next)
	p.lead.Run(func(w *pool.Worker) {
		rank := 0
		if p.groups != nil {
			w.Use(p.groups)
			rank = w.Group().ID()
		}
		scratch := unsafe.Add(p.scratch.Pointer(), w.Index()*p.each)
		packed, ops := p.packed, p.ops
		ops.W, ops.C = &packed, unsafe.Add(ops.C, rank*p.output.Len()/ranks/cacheLine*cacheLine)
		for i := range p.times {
			copyOf := (p.at + i*ranks + rank) % p.copies
			packed.Data = unsafe.Add(p.weights.Pointer(), copyOf*p.panels*p.layout.PanelStride())
			p.gemm.Work(w, &p.next[rank], scratch, &ops)
			w.Barrier()
		}
	})
	seconds := time.Since(began).Seconds() / float64(p.times)
	p.at = (p.at + p.times*ranks) % p.copies
	return seconds
}

const cacheLine = 64

// prepare fills the operands for a trial if they hold something else.
func (b *GemmBench) prepare(key plans.WeightKey, t search.Trial) (microkernel.Layout, error) {
	wt, err := microkernel.ParseWeightType(key.Type)
	if err != nil {
		return microkernel.Layout{}, fmt.Errorf("%w: %w", search.ErrUnfit, err)
	}
	l := microkernel.Layout{Type: wt, N: key.N, K: key.K}
	if err := l.Validate(); err != nil {
		return l, fmt.Errorf("%w: %w", search.ErrUnfit, err)
	}
	if l.Bytes() > b.weights.Len() || 4*t.M*mem.RowStride(key.N) > b.output.Len()/len(b.next) ||
		4*t.M*mem.RowStride(key.K) > b.input.Len() {
		return l, fmt.Errorf("%w: operands of m %d and %s are larger than was planned for", search.ErrUnfit, t.M, key)
	}
	if shape := (plans.WeightKey{K: key.K, Type: key.Type}); b.filled != shape {
		if err := b.fillWeights(l); err != nil {
			return l, err
		}
		b.filled = shape
	}
	if b.width != key.K || b.rows < t.M {
		b.fillInput(t.M, key.K)
		b.ready = 0
	}
	if t.Compute != microkernel.ComputeF32 && (b.form != t.Compute || b.ready < t.M) {
		if t.M*tp.QuantizedRowBytes(t.Compute, key.K) > b.rounded.Len() {
			return l, fmt.Errorf("%w: quantized activations of m %d and %s are larger than was planned for",
				search.ErrUnfit, t.M, key)
		}
		b.roundInput(t.Compute, t.M, key.K)
	}
	return l, nil
}

// fillWeights packs some rows of random values and repeats their panels through the whole buffer.
func (b *GemmBench) fillWeights(l microkernel.Layout) error {
	const panels = 16
	l.N = panels * microkernel.PanelWidth
	raw, err := randomRows(l, b.seed)
	if err != nil {
		return err
	}
	size := l.Bytes()
	if size > b.weights.Len() {
		l.N = b.weights.Len() / l.PanelStride() * microkernel.PanelWidth
		size = l.Bytes()
	}
	data := b.weights.Bytes()
	if err := microkernel.Pack(data[:size], l, 0, l.N, raw, 0); err != nil {
		return fmt.Errorf("packing random weights: %w", err)
	}
	const piece = 1 << 20
	pieces := (len(data) - size + piece - 1) / piece
	b.lead.Run(func(w *pool.Worker) {
		for lo, hi, ok := w.Next(&b.next[0], pieces, 4); ok; lo, hi, ok = w.Next(&b.next[0], pieces, 4) {
			from, to := size+lo*piece, min(size+hi*piece, len(data))
			for from < to {
				from += copy(data[from:to], data[from%size:size])
			}
		}
	})
	return nil
}

// randomRows returns rows of a weight in the format of a model file.
func randomRows(l microkernel.Layout, seed uint64) ([]byte, error) {
	t, err := gguf.ParseType(l.Type.String())
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, uint64(l.K)))
	values := make([]float32, l.K)
	row := t.RowBytes(l.K)
	raw := make([]byte, l.N*row)
	for r := range l.N {
		for i := range values {
			values[i] = float32(rng.NormFloat64()) * 0.05
		}
		if err := gguf.Quantize(raw[r*row:(r+1)*row], t, values); err != nil {
			return nil, fmt.Errorf("making random weights: %w", err)
		}
	}
	return raw, nil
}

func (b *GemmBench) fillInput(m, k int) {
	rng := rand.New(rand.NewPCG(b.seed, 2))
	x := b.input.Float32s()
	stride := mem.RowStride(k)
	for i := range min(len(x), m*stride) {
		x[i] = float32(rng.NormFloat64())
	}
	b.rows, b.width = m, k
}

// roundInput quantizes the first m rows for a compute path.
func (b *GemmBench) roundInput(c microkernel.Compute, m, k int) {
	x := b.input.Float32s()
	stride, rows := mem.RowStride(k), tp.QuantizedRowBytes(c, k)
	for r := range m {
		b.vec.QuantizeRow(c, &x[r*stride], k, unsafe.Add(b.rounded.Pointer(), r*rows))
	}
	b.form, b.ready = c, m
}

// RoundedBytes returns the size of m rows of k quantized activations of a compute path, or 0 if it
// reads float32.
func RoundedBytes(c microkernel.Compute, m, k int) int {
	if c != microkernel.ComputeF32 {
		return m * tp.QuantizedRowBytes(c, k)
	}
	return 0
}

func (b *GemmBench) operands(t search.Trial, l microkernel.Layout) gemm.Operands {
	o := gemm.Operands{M: t.M, A: b.input.Pointer(), AStride: 4 * mem.RowStride(l.K), C: b.output.Pointer(),
		CStride: 4 * mem.RowStride(l.N)}
	o.SetQuantized(t.Compute, b.rounded.Pointer(), tp.QuantizedRowBytes(t.Compute, l.K))
	return o
}
