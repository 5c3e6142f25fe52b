package exec

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/heuristic"
	"sandwich/plans/summary"
	"sandwich/profiles"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// divisions is the number of forwards under random divisions for each mix of worker kinds. `make
// divisions` runs more.
var divisions = flag.Int("divisions", 0, "forwards of each mix of worker kinds under random divisions; 0: a few")

// oddFile returns a small model with products that are taller than wide at 64 rows, and of widths
// that no register tile divides, and a plan for it.
func oddFile(t *testing.T, typ gguf.Type, arch string) (*gguf.File, *plans.Plan) {
	c := model.Config{Name: "odd", Arch: arch, Eps: 1e-5, RopeBase: 10000, Dims: model.Dims{Hidden: 96, Layers: 1,
		Heads: 3, KVHeads: 1, HeadDim: 32, FFN: 160, Vocab: 325, Context: 192}}
	if arch == "qwen3moe" {
		c.Experts = model.Experts{Count: 5, Used: 2, FFN: 64}
	}
	return configFile(t, c, typ, 1)
}

// mixed returns a plan of so many workers with random instruction sets and schedules.
func mixed(t *testing.T, rng *rand.Rand, base *plans.Plan, workers, ranks int) *plans.Plan {
	t.Helper()
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for w := range workers {
		isas := host.Features().ISAs()
		if isa := isas[min(rng.IntN(2*len(isas)), rng.IntN(len(isas)))]; w > 0 || rng.IntN(3) == 0 {
			parts = append(parts, fmt.Sprintf("%d=%s", w, isa))
		}
	}
	o := heuristic.Options{Weights: base.Weights, ISA: strings.Join(parts, ","), Service: &plans.ServiceConfig{}}
	for r := range ranks {
		var pus topotree.CPUSet
		for w := r * workers / ranks; w < (r+1)*workers/ranks; w++ {
			pus = pus.Union(topotree.NewCPUSet(w))
		}
		o.Service.Ranks = append(o.Service.Ranks, plans.Rank{PUs: pus, NUMANode: -1})
		o.Service.PrefillPUs = o.Service.PrefillPUs.Union(pus)
	}
	o.Service.DecodePUs = o.Service.PrefillPUs
	plan, err := heuristic.Default(host, base.Model, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range plan.Prefill.Tables {
		for i := range table.Rules {
			drawSchedule(rng, host.Features(), &table.Rules[i].Schedule)
		}
	}
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// drawSchedule draws another register tile of the same instruction set, and slices for it.
func drawSchedule(rng *rand.Rand, have microkernel.Features, s *plans.Schedule) {
	k := s.Kernel
	list := microkernel.SpaceOf(have, k.ISA, k.Compute, k.B, func(s microkernel.Spec) bool {
		return s.NR <= 64 && !s.MatrixUnit()
	})
	if len(list) > 0 && !tp.RaceEnabled {
		k = list[rng.IntN(len(list))]
	}
	s.Kernel, s.Pack = k, rng.IntN(3) == 0
	s.BM, s.BN = k.MR*(1+rng.IntN(6)), k.NR*(1+rng.IntN(4))
}

// TestHeterogeneousWorkersGiveEqualBits checks DESIGN rule 6 for heterogeneous workers: logits have
// the same bits for any kinds of workers and any division of products, in chunks or by random
// rates.
func TestHeterogeneousWorkersGiveEqualBits(t *testing.T) {
	n, plans := 12, 4
	if tp.RaceEnabled {
		plans = 1
	}
	if *divisions > 0 {
		n = *divisions
	} else if tp.RaceEnabled || testing.Short() {
		n = 2
	}
	for i, c := range []struct {
		typ            gguf.Type
		arch           string
		workers, ranks int
	}{{gguf.F32, "llama", 2, 1}, {gguf.Q8_0, "llama", 4, 1}, {gguf.Q8_0, "qwen3moe", 3, 1}, {gguf.F16, "llama", 4, 2},
		{gguf.Q4_0, "qwen3", 3, 1}} {
		t.Run(fmt.Sprintf("%s/%s/%d", c.arch, c.typ, c.workers), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			file, base := oddFile(t, c.typ, c.arch)
			var want [][]float32
			for range plans {
				plan := mixed(t, rng, base, c.workers, c.ranks)
				classes := runMixed(t, file, plan, rng, n, &want)
				if classes && len(plan.Classes) == 0 {
					t.Error("the workers of a plan with one kind are heterogeneous")
				}
			}
		})
	}
}

// runMixed runs forwards of random rows under a plan, with new random rates for each, and compares
// the logits of every row with those of the first run. It reports whether the workers are
// heterogeneous.
func runMixed(t *testing.T, file *gguf.File, plan *plans.Plan, rng *rand.Rand, n int, want *[][]float32) bool {
	t.Helper()
	const rows = 80
	plan.Chunk = rows
	a, err := Open(t.Context(), Options{File: file, Plan: plan, Blocks: 4 * kvcache.BlocksFor(rows), LogitRows: rows,
		Unpinned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	e, err := a.Compile(&plan.Prefill, a.Workers)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range n {
		m := 1 + rng.IntN(rows)
		if rng.IntN(2) == 0 {
			m = 1 + rng.IntN(8)
		}
		cache := a.NewCache()
		seq := cache.Open(kvcache.Salt{})
		if !cache.Reserve(seq, m) {
			t.Fatal("no blocks")
		}
		cache.Cover(seq, m)
		batch := &kvcache.Batch{Prefill: true}
		batch.AddSpan(seq, kvcache.Span{Rows: m})
		for i := range m {
			batch.Tokens = append(batch.Tokens, int32(i*61%200))
			batch.LogitRows = append(batch.LogitRows, int32(i))
		}
		drawRates(rng, e.throughput)
		if _, err := e.Run(a.Workers.Pool, batch, 0, nil); err != nil {
			t.Fatal(err)
		}
		for i := range m {
			got := e.Logits(i)
			if len(*want) == i {
				*want = append(*want, slices.Clone(got))
			}
			for j, w := range (*want)[i] {
				if math.Float32bits(w) != math.Float32bits(got[j]) {
					t.Fatalf("%d rows under %s: logit %d of row %d is %v, and was %v", m,
						summary.Headline(plan, bundle.Untuned),
						j, i, got[j], w)
				}
			}
		}
	}
	return e.throughput != nil
}

// drawRates replaces the measured rates.
func drawRates(rng *rand.Rand, t *gemm.Throughput) {
	if t == nil {
		return
	}
	t.Override(func() float64 {
		if rng.IntN(200) == 0 {
			return 0
		}
		return 1e9 * math.Pow(10, 2*rng.Float64()-1)
	}, func() float64 {
		if rng.IntN(4) == 0 {
			return 1
		}
		return 0
	})
}
