package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/cpus"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// crews returns ranks with the given numbers of workers: {2, 1} is one rank with two workers and
// one with one. The PUs need not exist, since the workers of these tests are not pinned.
func crews(workers ...int) *plans.ServiceConfig {
	s := &plans.ServiceConfig{}
	for _, n := range workers {
		r := plans.Rank{NUMANode: -1}
		for range n {
			pu := s.PrefillPUs.Count()
			r.PUs, s.PrefillPUs = r.PUs.Union(topotree.NewCPUSet(pu)), s.PrefillPUs.Union(topotree.NewCPUSet(pu))
		}
		s.Ranks = append(s.Ranks, r)
	}
	s.DecodePUs = s.PrefillPUs
	return s
}

// TestRanksParity runs the reference models in several ranks: against the same logits and greedy
// tokens, in the same tolerance, as one.
func TestRanksParity(t *testing.T) {
	skipUnderRace(t)
	exact := heuristic.Options{Compute: "f32", KV: "f32"}
	for _, c := range []struct {
		name   string
		ranks  []int
		o      heuristic.Options
		tol    tolerance
		refuse string
	}{
		{"llama-f32", []int{1, 1}, exact, exactTolerance, ""},
		{"llama-f32", []int{1, 1, 1, 1, 1, 1, 1, 1}, exact, exactTolerance, ""}, // two ranks share each KV head
		{"llama-f32", []int{2, 1}, exact, exactTolerance, ""},
		{"llama-tied-f32", []int{1, 1, 1}, exact, exactTolerance, ""}, // 8 heads and ffn 160 in three
		{"llama-bf16", []int{1, 2, 1}, exact, exactTolerance, ""},
		{"llama-q8_0", []int{1, 1, 1, 1, 1}, exact, exactTolerance, ""},
		{"llama-q8_0", []int{2, 2}, heuristic.Options{}, int8Tolerance, ""},
		{"llama-q4_0", []int{1, 1}, exact, exactTolerance, ""},
		{"qwen2-f32", []int{1, 1, 1, 1}, exact, exactTolerance, ""}, // biases; two ranks share each KV head
		{"qwen2-f32", []int{1, 1, 1}, heuristic.Options{Compute: "f32"}, f16KVTolerance, ""},
		{"qwen3-f32", []int{1, 1, 1, 1}, exact, exactTolerance, ""},
		{"qwen3-q8_0", []int{1, 1, 1}, exact, exactTolerance, ""},
		{"qwen3moe-f32", []int{1, 1}, exact, exactTolerance, ""},
		{"qwen3moe-f32", []int{1, 1, 1, 1}, exact, exactTolerance, ""}, // one KV head for all
		{"qwen3moe-q8_0", []int{1, 1}, exact, exactTolerance, ""},
		{"qwen2-f32", []int{1, 1, 1, 1, 1}, exact, tolerance{}, "5 ranks: the model has 4 heads"},
		{"llama-q4_k", []int{1, 1}, exact, tolerance{}, "blocks of 256 columns of o must stay whole"},
		{"qwen3-q4_k_m", []int{1, 1}, exact, tolerance{}, "2 ranks: the ffn width 256 has 1 blocks of 256"},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.name, c.ranks), func(t *testing.T) {
			ref, file := openReference(t, "parity", c.name)
			c.o.Service = crews(c.ranks...)
			if c.refuse != "" {
				if _, err := planFor(t, file, c.o); err == nil || !strings.Contains(err.Error(), c.refuse) {
					t.Errorf("%v, want %q", err, c.refuse)
				}
				return
			}
			r := openTestRunner(t, file, c.o, 64)
			defer r.Close()
			r.Lead(func(l *pool.Leader) { checkParity(t, ref, NewSequence(r, l), c.tol) })
		})
	}
}

// TestRanksBitEqual checks rule 6 within one partition: the logits have the same bits for all
// assignments of workers to ranks, chunks, batches and ways of waiting.
func TestRanksBitEqual(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		arch string
		typ  gguf.Type
		kv   string
	}{{"qwen3", gguf.F32, "f32"}, {"qwen3", gguf.Q8_0, ""}, {"qwen3", gguf.Q4_0, "q8_0"}, {"qwen2", gguf.BF16, ""},
		{"qwen3moe", gguf.F32, ""}, {"qwen3moe", gguf.Q8_0, ""}} {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s/%s/%d", c.arch, c.typ, n), func(t *testing.T) {
				file := smallModel(t, c.arch, c.typ)
				one := heuristic.Options{KV: c.kv, Service: crews(slices.Repeat([]int{1}, n)...)}
				want := logitsAlone(t, file, one, 512)
				same(t, "chunk 7", want, logitsAlone(t, file, one, 7))
				two := one
				two.Service = crews(slices.Repeat([]int{2}, n)...)
				same(t, "two workers a rank", want, logitsAlone(t, file, two, 64))
				same(t, "batch of 8", want, logitsInBatch(t, file, two, 8))
				narrow := two
				narrow.ISA = "avx2"
				same(t, "avx2", want, logitsAlone(t, file, narrow, 512))
				fewer := *two.Service // decode on the first worker of each rank
				fewer.DecodePUs = topotree.CPUSet{}
				for _, r := range fewer.Ranks {
					fewer.DecodePUs = fewer.DecodePUs.Union(topotree.NewCPUSet(r.PUs.First()))
				}
				two.Service = &fewer
				same(t, "hot switch", want, logitsAlone(t, file, two, 100))
				testSync = tp.SyncA
				defer func() { testSync = tp.SyncB }()
				same(t, "barrier of all after each op", want, logitsAlone(t, file, two, 64))
			})
		}
	}
}

// TestRanksStatic assigns slices to the workers of a rank in advance, if it has as many as the
// scheme needs: the bits are the same.
func TestRanksStatic(t *testing.T) {
	skipUnderRace(t)
	file := smallModel(t, "qwen3", gguf.Q8_0)
	o := heuristic.Options{Service: crews(2, 1)}
	want := logitsAlone(t, file, o, 64)
	plan, err := planFor(t, file, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []*plans.Phase{&plan.Prefill, &plan.Decode} {
		for _, table := range phase.Tables {
			for i := range table.Rules {
				table.Rules[i].Schedule.WaysM, table.Rules[i].Schedule.WaysN = 1, 2
			}
		}
	}
	plan.Chunk = 64
	r, err := forward.Open(t.Context(), forward.Options{Options: exec.Options{File: file, Plan: plan, Blocks: 9,
		LogitRows: 1,
		Unpinned:  true}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	same(t, "static schemes", want, logitsOf(t, r, 64))
}

// TestRanksHeld halts a prefill at each barrier of the ranks, which within a subgraph follow the
// steps of divided ops, and runs other sequences meanwhile: the logits have the same bits.
func TestRanksHeld(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		arch    string
		typ     gguf.Type
		workers []int
	}{{"qwen3", gguf.F32, []int{1, 2, 1}}, {"qwen3moe", gguf.F32, []int{1, 2, 1}}, {"qwen3", gguf.Q8_0, []int{1, 1}},
		{"qwen3moe", gguf.Q8_0, []int{2, 2}}} {
		t.Run(fmt.Sprint(c.arch, c.typ, c.workers), func(t *testing.T) {
			file, o := smallModel(t, c.arch, c.typ), heuristic.Options{Service: crews(c.workers...)}
			r := openTestRunner(t, file, o, 64)
			defer r.Close()
			places, ops := 0, r.Model.Ops
			for i, op := range r.Model.Ops {
				router := op.Kind == model.OpMatMul && r.Model.Weights[op.W[0]].Role == "router"
				if router || slices.Contains([]model.Kind{model.OpEmbed, model.OpNorm, model.OpAddNorm, model.OpRoute},
					op.Kind) && i+1 < r.Ops() {
					places++
				}
			}
			if err := r.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.Lead(func(l *pool.Leader) { checkHeld(t, r, l, places, nil) })
			cuts := make([]uint16, len(ops))
			for i := range ops {
				if !exec.Cuttable(&ops[i]) {
					continue
				}
				cuts[i] = 3
				if places += 3; i+1 == len(ops) || ops[i+1].Kind == model.OpAddNorm || ops[i+1].Kind == model.OpRoute {
					places-- // the last of its steps ends where they meet anyway, or the forward
				}
			}
			r.Lead(func(l *pool.Leader) { checkHeld(t, r, l, places, cuts) })
			want := logitsAlone(t, file, o, 64)
			for i := range cuts { // they meet behind some ops, and behind the steps of those that are cut
				cuts[i] -= uint16(i) % min(3, cuts[i]+1)
			}
			r.Cut(cuts)
			same(t, "cut and not halted", want, logitsOf(t, r, 64))
		})
	}
}

// ranksOptions are optionsFor with ranks of these numbers of workers.
func ranksOptions(t testing.TB, file *gguf.File, workers ...int) Options {
	t.Helper()
	o := optionsFor(t, file)
	plan, err := planFor(t, file, heuristic.Options{Service: crews(workers...)})
	if err != nil {
		t.Fatal(err)
	}
	plan.Chunk = o.Plan.Chunk
	o.Plan, o.Unpinned = plan, true
	return o
}

// TestRanksServe checks that many concurrent requests get the tokens that each gets alone.
func TestRanksServe(t *testing.T) {
	file, err := tinyFile()
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, ranksOptions(t, file, 1, 2))
	request := func(i int) api.Request {
		return api.Request{Prompt: tinyPrompt(uint64(i), 20+15*i), MaxTokens: 6, IgnoreEOS: true}
	}
	want := make([][]int32, 4)
	for i := range want {
		want[i], _ = generate(t, e, request(i))
	}
	var all sync.WaitGroup
	for i := range want {
		all.Go(func() {
			if got, _ := generate(t, e, request(i)); !slices.Equal(got, want[i]) {
				t.Errorf("request %d in a batch: %v, alone %v", i, got, want[i])
			}
		})
	}
	all.Wait()
	checkIdleSoon(t, e)
}

// TestRanksPanic checks that the failure of one worker releases those that wait for it in a gather.
func TestRanksPanic(t *testing.T) {
	file, err := tinyFile()
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, ranksOptions(t, file, 1, 2))
	ops := e.runner.Model.Ops
	i := slices.IndexFunc(ops, func(op model.Op) bool { return op.Kind == model.OpAddNorm })
	ops[i].Norm.Data = nil
	_, err = e.Generate(context.Background(), api.Request{Prompt: tinyPrompt(1, 40)}, nil)
	var internal *InternalError
	if !errors.As(err, &internal) {
		t.Errorf("after a panic: %v", err)
	}
}

// TestKeepRanks checks that a rank that lost all its PUs keeps one worker.
func TestKeepRanks(t *testing.T) {
	file, err := tinyFile()
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, ranksOptions(t, file, 2, 2))
	for _, c := range []struct{ workers, lost, want []int }{
		{[]int{0, 1, 2, 3}, nil, []int{0, 1, 2, 3}},
		{[]int{0, 1, 2, 3}, []int{2, 3}, []int{0, 1, 2}},
		{[]int{1, 3}, []int{1}, []int{1, 3}},
	} {
		s := cpus.State{Places: pool.Places{Lost: c.lost}}
		if got := s.Team(c.workers, e.runner.Assembly().Workers.Ranks()); !slices.Equal(got, c.want) {
			t.Errorf("of %v, %v are lost: %v, want %v", c.workers, c.lost, got, c.want)
		}
	}
}

// TestRanksCut checks that ops of a proactive prefill that are predicted above the bound are
// divided in several ranks, too, with barriers between the steps, and that the tokens are those of
// reactive requests, whose ops are not divided.
func TestRanksCut(t *testing.T) {
	skipUnderRace(t)
	file, err := tinyFile()
	if err != nil {
		t.Fatal(err)
	}
	o := ranksOptions(t, file, 1, 1)
	o.Bound = time.Microsecond
	req := api.Request{Prompt: tinyPrompt(1, 60), MaxTokens: 6, IgnoreEOS: true}
	e := byHand(t, o)
	e.runner.Lead(func(l *pool.Leader) {
		want, j := aloneAndAgain(t, e, l, req)
		act := e.driver.Next()
		cuts, steps := e.cores.cuts[act.Set], len(e.cores.gate.steps)
		if slices.Max(cuts) < 2 || steps <= e.runner.Ops() {
			t.Errorf("%d steps of %d ops, cuts %d", steps, e.runner.Ops(), cuts)
		}
		e.run(l, act)
		for e.forward(l) != nil {
		}
		if got, _ := j.drained(); !slices.Equal(got, want) {
			t.Errorf("tokens of a prefill that was cut %v, whole %v", got, want)
		}
	})
}
