package exec

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// BenchmarkOps shows where the time of a forward goes: the time of each kind of op on llama-160m
// (random weights), in microseconds of a whole forward on one worker, at the median.
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
			began, g := time.Now(), e.together(w)
			for i := range e.model.Ops {
				e.do(&g, i, whole)
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

// benchModel is llama-160m with random weights.
func benchModel(b *testing.B, typ gguf.Type) *gguf.File {
	c, err := model.Preset("llama-160m")
	if err != nil {
		b.Fatal(err)
	}
	var data bytes.Buffer
	if err := model.SynthTo(context.Background(), gguf.NewWriter(&data), c, model.Uniform(typ), 1, nil); err != nil {
		b.Fatal(err)
	}
	f, err := gguf.Parse(data.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// openOps prepares a prompt of the given rows under the untuned plan on one worker.
func openOps(b *testing.B, f *gguf.File, rows int) (*Executor, *pool.Pool) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	host, err := profiles.Live()
	must(err)
	shape, err := model.ShapeOf(f)
	must(err)
	plan, err := heuristic.Default(host, shape, heuristic.Options{Threads: 1})
	must(err)
	plan.Chunk = rows
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
		batch.Tokens = append(batch.Tokens, int32(i*61%shape.Vocab))
	}
	must(e.prepare(batch))
	return e, a.Workers.Pool
}

// opKind is the name of an op without its layer.
func opKind(op *model.Op) string {
	return strings.ReplaceAll(op.Name[strings.LastIndexByte(op.Name, '.')+1:], "_", "-")
}

// BenchmarkEmbedding reads the rows of 512 tokens of llama-160m (random weights), from a table of
// its own and from a packed head, on one thread.
func BenchmarkEmbedding(b *testing.B) {
	for _, tied := range []bool{false, true} {
		b.Run(fmt.Sprintf("q8_0/tied=%v", tied), func(b *testing.B) {
			f := benchModel(b, gguf.Q8_0)
			e, _ := openOps(b, f, 512)
			table := *e.embedding
			if tied { // llama-160m has a head of its own, of the same shape
				head := len(e.model.Weights) - 1
				packed := e.ranks[0].weights.At(head)
				table.table = nil
				table.heads = []headPiece{{layout: packed.Layout, packed: unsafe.Slice((*byte)(packed.Data),
					packed.Layout.Bytes())}}
			}
			row := make([]float32, e.model.Dims.Hidden)
			for b.Loop() {
				for i := range 512 {
					if err := table.row(row, i*7919%e.model.Dims.Vocab); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkSound looks through the logits of llama-160m, once a drawn token.
func BenchmarkSound(b *testing.B) {
	logits := make([]float32, 32000)
	for b.Loop() {
		if !finiteFloats(logits) {
			b.Fatal("zeros are finite")
		}
	}
}
