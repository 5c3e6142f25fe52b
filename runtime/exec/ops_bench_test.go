package exec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// BenchmarkOps shows where the time of a forward goes: the medians of each kind of op on llama-160m (random weights), in microseconds of a
// whole forward, beside the whole. Set -cpu to the number of workers.
func BenchmarkOps(b *testing.B) {
	for _, typ := range []gguf.Type{gguf.F32, gguf.Q8_0} {
		for _, rows := range []int{1, 512} {
			b.Run(fmt.Sprintf("%s/m=%d", typ, rows), func(b *testing.B) { benchOps(b, typ, rows) })
		}
	}
}

func benchOps(b *testing.B, typ gguf.Type, rows int) {
	host, err := profiles.Live()
	if err != nil {
		b.Skip(err)
	}
	path := filepath.Join(b.TempDir(), "model.gguf")
	c, err := model.Preset("llama-160m")
	if err != nil {
		b.Fatal(err)
	}
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := model.SynthTo(context.Background(), gguf.NewWriter(out), c, typ, 1, nil); err != nil {
		b.Fatal(err)
	}
	out.Close()
	f, err := gguf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	m, err := model.Load(f)
	if err != nil {
		b.Fatal(err)
	}
	shape, err := model.ShapeOf(f)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := plans.Default(host, shape, plans.DefaultOptions{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	kernels, err := NewKernels(PlanISA(plan), plan)
	if err != nil {
		b.Fatal(err)
	}
	p, err := pool.New(plan.Prefill.PUs, pool.Options{Pin: true})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	w, err := LoadWeights(m, plan, p, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Free()
	kv, err := NewKVStore(m.Dims, microkernel.KVF16, kvcache.BlocksFor(rows))
	if err != nil {
		b.Fatal(err)
	}
	defer kv.Free()
	bufs, err := NewBuffers(m, rows, 1, w.MaxQuantizedK())
	if err != nil {
		b.Fatal(err)
	}
	defer bufs.Free()
	e, err := New(Config{Model: m, Weights: w, KV: kv, Buffers: bufs, Workers: p.Size(), Phase: &plan.Prefill, Kernels: kernels})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	batch := kvcache.Batch{Tokens: make([]int32, rows), LogitRows: []int32{int32(rows - 1)}, Prefill: rows > 1}
	table := make([]kvcache.BlockID, kvcache.BlocksFor(rows))
	for i := range table {
		table[i] = kvcache.BlockID(i)
	}
	batch.Spans = []kvcache.Span{{Rows: rows, Table: table}}
	for i := range batch.Tokens {
		batch.Tokens[i] = int32(i * 61 % m.Dims.Vocab)
	}
	if err := e.prepare(&batch); err != nil {
		b.Fatal(err)
	}
	samples := map[string][]time.Duration{}
	for b.Loop() {
		sum := map[string]time.Duration{}
		p.Run(func(w *pool.Worker) {
			began := time.Now()
			for i := range m.Ops {
				e.do(w, &m.Ops[i])
				w.Barrier()
				if w.ID() == 0 {
					now := time.Now()
					sum[opKind(&m.Ops[i])] += now.Sub(began)
					began = now
				}
			}
		})
		for k, d := range sum {
			samples[k] = append(samples[k], d)
		}
	}
	for k, s := range samples {
		slices.Sort(s)
		b.ReportMetric(float64(s[len(s)/2].Nanoseconds())/1000, k+"-us")
	}
}

// opKind is the name of an op without its layer.
func opKind(op *model.Op) string {
	return strings.ReplaceAll(op.Name[strings.LastIndexByte(op.Name, '.')+1:], "_", "-")
}
