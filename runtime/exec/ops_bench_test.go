package exec

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// BenchmarkOps reports the time of each kind of op in a forward of llama-160m (random weights) on
// one worker, in microseconds, as medians.
func BenchmarkOps(b *testing.B) {
	for _, typ := range []gguf.Type{gguf.F32, gguf.Q8_0} {
		for _, rows := range []int{1, 512} {
			b.Run(fmt.Sprintf("%s/m=%d", typ, rows), func(b *testing.B) { benchOps(b, typ, rows) })
		}
	}
}

func benchOps(b *testing.B, typ gguf.Type, rows int) {
	e, p := openOps(b, benchModel(b, typ), rows)
	samples := map[string][]time.Duration{}
	for b.Loop() {
		sum := map[string]time.Duration{}
		p.Run(func(w *pool.Worker) {
			began, g := time.Now(), e.groupOfAll(w)
			for i := range e.model.Ops {
				e.runIn(&g, position{op: i, step: tp.WholeOp})
				w.Barrier()
				if w.ID() == 0 {
					now := time.Now()
					sum[opKind(&e.model.Ops[i])] += now.Sub(began)
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

// benchModel returns llama-160m with random weights.
func benchModel(b *testing.B, typ gguf.Type) *gguf.File {
	c, err := synth.Preset("llama-160m")
	if err != nil {
		b.Fatal(err)
	}
	var data bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&data), c, synth.Uniform(typ), 1, nil); err != nil {
		b.Fatal(err)
	}
	f, err := gguf.Parse(data.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// openPlan returns the untuned plan of one worker.
func openPlan(b *testing.B, f *gguf.File, chunk int) *plans.Plan {
	host, err := profiles.Live()
	if err != nil {
		b.Fatal(err)
	}
	shape, err := modelshape.Of(f)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := heuristic.Default(host, shape, heuristic.Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	plan.Chunk = chunk
	return plan
}

// openOps prepares a prompt of the given rows under the untuned plan on one worker.
func openOps(b *testing.B, f *gguf.File, rows int) (*Executor, *pool.Pool) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	plan := openPlan(b, f, rows)
	a, err := Open(b.Context(), Options{File: f, Plan: plan, Blocks: kvcache.BlocksFor(rows), LogitRows: 1})
	must(err)
	b.Cleanup(func() { a.Close() })
	e, err := a.Compile(&plan.Prefill, a.Workers)
	must(err)
	b.Cleanup(func() { e.Close() })
	batch := &kvcache.Batch{LogitRows: []int32{int32(rows - 1)}, Prefill: rows > 1}
	cache := a.NewCache()
	seq := cache.Open(kvcache.Salt{})
	cache.Reserve(seq, rows)
	cache.Cover(seq, rows)
	batch.AddSpan(seq, kvcache.Span{Rows: rows})
	for i := range rows {
		batch.Tokens = append(batch.Tokens, int32(i*61%plan.Model.Vocab))
	}
	must(e.begin(batch, 0, nil))
	return e, a.Workers.Pool
}

// opKind returns the name of an op without its layer.
func opKind(op *model.Op) string {
	return strings.ReplaceAll(op.Name[strings.LastIndexByte(op.Name, '.')+1:], "_", "-")
}

// BenchmarkEmbedding reads the rows of 512 tokens of llama-160m (random weights) from a table of
// its own on one thread.
func BenchmarkEmbedding(b *testing.B) {
	f := benchModel(b, gguf.Q8_0)
	m, err := modelfile.Load(f)
	if err != nil {
		b.Fatal(err)
	}
	plan := openPlan(b, f, 512)
	a, err := Open(b.Context(), Options{File: f, Plan: plan, Blocks: kvcache.BlocksFor(512), LogitRows: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	row := make([]float32, m.Dims.Hidden)
	for b.Loop() {
		for i := range 512 {
			if err := a.Weights.Tokens.Row(row, i*7919%m.Dims.Vocab); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkSound checks the logits of llama-160m, as for each sampled token.
func BenchmarkSound(b *testing.B) {
	logits := make([]float32, 32000)
	for b.Loop() {
		if !finiteFloats(logits) {
			b.Fatal("zeros are finite")
		}
	}
}
