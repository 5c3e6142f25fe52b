package exec

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/exec/load"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/topotree"
)

// smallFile returns a llama of a few kilobytes in memory and its default plan for a number of
// ranks.
func smallFile(t *testing.T, typ gguf.Type, tied bool, ranks int) (*gguf.File, *plans.Plan) {
	t.Helper()
	return configFile(t, model.Config{Name: "small", Arch: "llama", Eps: 1e-5, RopeBase: 10000, Tied: tied,
		Dims: model.Dims{Hidden: 256, Layers: 1, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 512, Vocab: 333, Context: 64}},
		typ, ranks)
}

// divide divides a model among the ranks of a plan.
func divide(t *testing.T, m *model.Model, plan *plans.Plan) *tp.Shards {
	t.Helper()
	shards, err := divideModel(m, plan)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// configFile returns a model with random weights and a plan for it.
func configFile(t *testing.T, c model.Config, typ gguf.Type, ranks int) (*gguf.File, *plans.Plan) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var data bytes.Buffer
	must(synth.Write(context.Background(), gguf.NewWriter(&data), c, synth.Uniform(typ), 7, nil))
	f, err := gguf.Parse(data.Bytes())
	must(err)
	host, err := profiles.Live()
	must(err)
	shape, err := modelshape.Of(f)
	must(err)
	var o heuristic.Options
	if ranks > 1 {
		o.Service = &plans.ServiceConfig{}
		for r := range ranks {
			o.Service.Ranks = append(o.Service.Ranks, plans.Rank{NUMANode: -1, PUs: topotree.NewCPUSet(r)})
			o.Service.PrefillPUs = o.Service.PrefillPUs.Union(topotree.NewCPUSet(r))
		}
		o.Service.DecodePUs = o.Service.PrefillPUs
	}
	plan, err := heuristic.Default(host, shape, o)
	must(err)
	return f, plan
}

// TestEmbeddingGivesTheRowsOfTheFile checks that forwards read the bits of the file from memory of
// the weights, copied or packed, in any rank, and that MemoryOf returns the size of that memory.
func TestEmbeddingGivesTheRowsOfTheFile(t *testing.T) {
	for _, typ := range []gguf.Type{gguf.F32, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.Q6_K} {
		for _, tied := range []bool{false, true} {
			for _, ranks := range []int{1, 2} {
				if typ == gguf.Q6_K && ranks > 1 {
					continue // blocks of 256 cannot be divided by heads of 64
				}
				t.Run(fmt.Sprintf("%s/tied=%v/%d", typ, tied, ranks), func(t *testing.T) {
					f, plan := smallFile(t, typ, tied, ranks)
					m, err := modelfile.Load(f)
					if err != nil {
						t.Fatal(err)
					}
					shards := divide(t, m, plan)
					o := PlanWorkers(plan)
					o.Unpinned = true
					workers, err := NewWorkers(o)
					if err != nil {
						t.Fatal(err)
					}
					defer workers.Close()
					w, err := load.Load(t.Context(), shards, plan, workers.Pool,
						load.Options{Groups: workers.Grouping()})
					if err != nil {
						t.Fatal(err)
					}
					defer w.Free()
					checkEmbeddingRows(t, m, w)
					checkTableBytes(t, m, shards, w)
					whole, refused := MemoryOf(m)
					if ranks == 1 && (refused != nil || load.PackedBytes(shards) != whole.Packed) {
						t.Errorf("%d bytes of packed weights, the shards say %d: %v", whole.Packed,
							load.PackedBytes(shards), refused)
					}
				})
			}
		}
	}
}

func checkEmbeddingRows(t *testing.T, m *model.Model, w *load.Weights) {
	t.Helper()
	size := m.Embed.Type.RowBytes(m.Dims.Hidden)
	want, got := make([]float32, m.Dims.Hidden), make([]float32, m.Dims.Hidden)
	for token := range m.Dims.Vocab {
		if err := gguf.Dequantize(want, m.Embed.Type, m.Embed.Data[token*size:][:size]); err != nil {
			t.Fatal(err)
		}
		if err := w.Tokens.Row(got, token); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("token %d element %d: %v, the file has %v", token, i, got[i], want[i])
			}
		}
	}
}

// checkTableBytes checks that the embeddings are copied unless the head is the same matrix.
func checkTableBytes(t *testing.T, m *model.Model, shards *tp.Shards, w *load.Weights) {
	t.Helper()
	tables, want := load.PackedBytes(shards), int64(0)
	for r := range w.Ranks() {
		for _, p := range w.Of(r).Packed {
			tables -= int64(p.Layout.Bytes())
		}
	}
	if !m.Tied {
		want = int64(len(m.Embed.Data))
	}
	if tables != want {
		t.Errorf("%d bytes of copied tables, want %d; the head is the embedding: %v", tables, want, m.Tied)
	}
}
