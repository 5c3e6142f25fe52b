package kernels

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
	"sandwich/topotree"
	"sandwich/tuner/search"
)

// AttentionOptions configure TimeAttention.
type AttentionOptions struct {
	PUs     topotree.CPUSet
	ISA     microkernel.ISA
	KV      microkernel.KVType
	Dot     microkernel.AttentionDot
	HeadDim int
	KVHeads int
	Groups  []int // query heads per KV head
	Decode  []int // context lengths of decode steps
	Prefill []int // lengths of prompts
	Batch   int   // sequences of a decode step
	Chunk   int   // tokens of a prefill chunk
	Cold    int   // bytes of cache through which decode steps cycle, so that it comes from memory
	Least   time.Duration
	Seed    uint64
}

// blockBytes returns the bytes of a block of positions of one layer.
func (o *AttentionOptions) blockBytes() int {
	l := microkernel.KVLayout{HeadDim: o.HeadDim, Elem: o.KV}
	return o.KVHeads * (l.KBytes() + l.VBytes())
}

// AttentionTime is the attention of one layer: a decode step of Batch sequences of Context
// positions each, or a whole prompt of Context tokens, chunk by chunk from an empty cache.
type AttentionTime struct {
	Prefill bool
	Group   int
	Context int
	Threads int
	Seconds []float64 // of each call
	Bytes   float64   // of keys and values that a decode step must read
	FLOP    float64   // of the score and value products
	Stream  []float64 // B/s at which the same workers read the same memory, interleaved with the decode calls
	Peak    []float64 // FLOP/s of their multiply-adds, interleaved with the calls
}

// TimeAttention times attention.Attention on the KV store and the pinned workers that serve (rule
// 2), interleaved with the ceilings. It calls visit with each result. `sandwich bench attention`
// prints them.
func TimeAttention(ctx context.Context, o AttentionOptions, visit func(AttentionTime)) error {
	b, err := newAttentionBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.free()
	w, err := exec.NewWorkers(exec.WorkerOptions{PUs: o.PUs.Slice(), ISA: o.ISA})
	if err != nil {
		return err
	}
	defer w.Close()
	w.Pool.Lead(func(l *pool.Leader) {
		b.lead = l
		err = b.time(w.Vec, visit)
	})
	return err
}

// attentionBench is a KV store for the longest context, with as many layers as make it cold, and
// the rows of Q and of the output.
type attentionBench struct {
	AttentionOptions
	ctx    context.Context
	lead   *pool.Leader
	kv     *attention.KVStore
	layers int
	rows   *mem.Buffer // Q, then the output
	max    int         // maximum rows of each
	stride int
	reader *microkernel.Reader
	peak   *microkernel.Peak
	chunks pool.Counter

	layer, block int // position of the next decode step
}

func newAttentionBench(ctx context.Context, o AttentionOptions) (b *attentionBench, err error) {
	b = &attentionBench{AttentionOptions: o, ctx: ctx}
	made := b
	defer func() {
		if err != nil {
			made.free()
		}
	}()
	if b.reader, err = microkernel.NewReader(o.ISA, microkernel.Host()); err != nil {
		return nil, err
	}
	if b.peak, err = AttentionPeak(o.Dot, o.ISA); err != nil {
		return nil, err
	}
	longest, group := 0, 0
	for _, n := range o.Decode {
		longest = max(longest, o.Batch*kvcache.BlocksFor(n))
	}
	for _, n := range o.Prefill {
		longest = max(longest, kvcache.BlocksFor(n))
	}
	for _, g := range o.Groups {
		group = max(group, g)
	}
	dims := model.Dims{Layers: 1, KVHeads: o.KVHeads, HeadDim: o.HeadDim}
	blockBytes := o.blockBytes()
	b.layers = 1
	if len(o.Decode) > 0 {
		b.layers = max(1, (o.Cold+longest*blockBytes-1)/(longest*blockBytes))
	}
	dims.Layers = b.layers
	if b.kv, err = attention.NewKVStore(dims, o.KV, o.Dot, longest, mem.AnyNode); err != nil {
		return nil, err
	}
	b.stride = mem.RowStride(o.KVHeads * group * o.HeadDim)
	b.max = o.Batch
	if len(o.Prefill) > 0 {
		b.max = max(b.max, o.Chunk)
	}
	b.rows, err = mem.Alloc(2*4*b.max*b.stride, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	for i := range b.max * b.stride {
		*(*float32)(unsafe.Add(b.rows.Pointer(), 4*i)) = 2*rng.Float32() - 1
	}
	return b, nil
}

func (b *attentionBench) free() {
	if b.kv != nil {
		b.kv.Free()
	}
	if b.rows != nil {
		b.rows.Free()
	}
}

func (b *attentionBench) time(v *microkernel.Vec, visit func(AttentionTime)) error {
	b.kv.FillRandom(v, b.Seed)
	for _, group := range b.Groups {
		a, err := attention.New([]microkernel.ISA{b.ISA}, b.kv,
			attention.Shape{Groups: []int{group}, Dot: b.Dot}, b.PUs.Count(), b.PUs.Count())
		if err != nil {
			return err
		}
		err = b.timeGroup(a, group, visit)
		a.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *attentionBench) timeGroup(a *attention.Attention, group int, visit func(AttentionTime)) error {
	heads := float64(group * b.KVHeads * b.HeadDim)
	perPosition := b.blockBytes() / kvcache.BlockTokens
	for _, n := range b.Decode {
		t := AttentionTime{Group: group, Context: n, Bytes: float64(b.Batch * n * perPosition),
			FLOP: 4 * heads * float64(b.Batch*n)}
		if err := b.sample(&t, func() float64 { return b.decode(a, n) }); err != nil {
			return err
		}
		visit(t)
	}
	for _, n := range b.Prefill {
		t := AttentionTime{Prefill: true, Group: group, Context: n, FLOP: 4 * heads * float64(n) * float64(n+1) / 2}
		if err := b.sample(&t, func() float64 { return b.prefill(a, n) }); err != nil {
			return err
		}
		visit(t)
	}
	return nil
}

// sample repeats calls until there are enough samples, interleaved with the ceilings.
func (b *attentionBench) sample(t *AttentionTime, run func() float64) error {
	t.Threads = b.PUs.Count()
	run()
	s, err := search.Limit{MinReps: 3, MaxReps: 2000, Time: b.Least}.Repeat(func() (float64, error) {
		if !t.Prefill {
			t.Stream = append(t.Stream, b.stream(int(t.Bytes)))
		}
		t.Peak = append(t.Peak, PeakRate(b.lead, b.peak, b.PUs.Count()))
		return run(), context.Cause(b.ctx)
	})
	t.Seconds = s.Seconds
	return err
}

// output returns the rows of Q and the output rows after them.
func (b *attentionBench) output() (q, out tp.Rows) {
	at := func(i int) tp.Rows {
		return tp.Rows{Base: (*float32)(unsafe.Add(b.rows.Pointer(), 4*i*b.max*b.stride)), Stride: b.stride}
	}
	return at(0), at(1)
}

// decode runs decode steps, each on other blocks of the store, for at least callSeconds, and
// returns the seconds of one.
func (b *attentionBench) decode(a *attention.Attention, positions int) float64 {
	q, out := b.output()
	total, steps := time.Duration(0), 0
	for ; steps == 0 || total.Seconds() < callSeconds; steps++ {
		spans := b.window(positions)
		began := time.Now()
		a.Begin(spans)
		b.lead.Run(func(w *pool.Worker) {
			a.Run(w, b.layer, b.scale(), q, out)
			w.Barrier()
		})
		total += time.Since(began)
	}
	return total.Seconds() / float64(steps)
}

// scale returns the scale of the scores.
func (b *attentionBench) scale() float32 { return float32(1 / math.Sqrt(float64(b.HeadDim))) }

// window returns a batch of one-row spans over the next blocks of the store.
func (b *attentionBench) window(positions int) []kvcache.Span {
	blocks := kvcache.BlocksFor(positions)
	if b.block += b.Batch * blocks; b.block+b.Batch*blocks > b.kv.Blocks() {
		b.block, b.layer = 0, (b.layer+1)%b.layers
	}
	spans := make([]kvcache.Span, b.Batch)
	for i := range spans {
		table := make([]kvcache.BlockID, blocks)
		for j := range table {
			table[j] = kvcache.BlockID(b.block + i*blocks + j)
		}
		spans[i] = kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: positions - 1, Tables: kvcache.Tables{table}}
	}
	return spans
}

// prefill runs a prompt chunk by chunk and returns its seconds.
func (b *attentionBench) prefill(a *attention.Attention, tokens int) float64 {
	q, out := b.output()
	table := make([]kvcache.BlockID, kvcache.BlocksFor(tokens))
	for j := range table {
		table[j] = kvcache.BlockID(j)
	}
	began := time.Now()
	for pos := 0; pos < tokens; pos += b.Chunk {
		a.Begin([]kvcache.Span{{Rows: min(b.Chunk, tokens-pos), Pos: pos, Tables: kvcache.Tables{table}}})
		b.lead.Run(func(w *pool.Worker) {
			a.Run(w, 0, b.scale(), q, out)
			w.Barrier()
		})
	}
	return time.Since(began).Seconds()
}

// stream reads at least the given number of bytes of the store with all workers and returns the
// B/s.
func (b *attentionBench) stream(bytes int) float64 {
	const piece = 1 << 18
	all := b.kv.Memory()
	n := max(1, min(max(bytes, 8<<20), len(all))/piece)
	// Half a store away from the decode steps, so that neither finds the other's data in a cache.
	at := len(all) / b.layers * b.layer
	at += b.block * (len(all) / b.layers / b.kv.Blocks())
	at = (at + len(all)/2) % len(all) &^ (piece - 1)
	from := all[min(at, max(0, len(all)-n*piece)):]
	from = from[:min(len(from), n*piece)]
	began := time.Now()
	b.lead.Run(func(w *pool.Worker) {
		for lo, hi, ok := w.Next(&b.chunks, n, 1); ok; lo, hi, ok = w.Next(&b.chunks, n, 1) {
			b.reader.Read(from[lo*piece:min(len(from), hi*piece)], 1)
		}
		w.Barrier()
	})
	return float64(len(from)) / time.Since(began).Seconds()
}
