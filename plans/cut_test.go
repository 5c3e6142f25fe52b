package plans_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/diff"
	"sandwich/plans/heuristic"
	"sandwich/plans/internal/bundletest"
	"sandwich/profiles"
	"sandwich/topotree"
)

// randomShape is a model that may exist: any heads that share KV heads evenly, any widths that its
// types allow.
func randomShape(rng *rand.Rand) plans.ModelShape {
	types := []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q6_k"}
	pick := func() string { return types[rng.IntN(len(types))] }
	kv := 1 + rng.IntN(8)
	s := plans.ModelShape{
		Arch: "llama", Layers: 2, KVHeads: kv, Heads: kv * (1 + rng.IntN(8)), HeadDim: 16 * (1 + rng.IntN(8)),
		Hidden: 256 * (1 + rng.IntN(4)),
		FFN:    256 * (1 + rng.IntN(12)), Vocab: 64 + rng.IntN(5000),
	}
	if rng.IntN(4) == 0 {
		s.Experts, s.ExpertsUsed, s.ExpertFFN = 8, 2, 256*(1+rng.IntN(6))
	}
	q, kvWidth, ffn := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim, s.FFNWidth()
	o := pick()
	for q%plans.TypeBlock(o) != 0 {
		o = pick()
	}
	for _, w := range []plans.WeightShape{
		{Role: "q", N: q, K: s.Hidden, Type: pick()}, {Role: "k", N: kvWidth, K: s.Hidden, Type: pick()},
		{Role: "v", N: kvWidth, K: s.Hidden, Type: pick()},
		{Role: "o", N: s.Hidden, K: q, Type: o}, {Role: "gate", N: ffn, K: s.Hidden, Type: pick()}, {Role: "up", N: ffn,
			K: s.Hidden, Type: pick()},
		{Role: "down", N: s.Hidden, K: ffn, Type: pick()}, {Role: "down", N: s.Hidden, K: ffn, Type: pick()},
		{Role: "head", N: s.Vocab, K: s.Hidden, Type: pick()}, {Role: "router", N: 8, K: s.Hidden, Type: "f32"},
	} {
		w.Count = 1
		s.Weights = append(s.Weights, w)
	}
	return s
}

// TestCutIsAPartition checks on random models, numbers of ranks and of their PUs that every row and
// column of a divided matrix belongs to one rank, that divisions along columns are at block
// boundaries, and that a rank has exactly the KV heads that its queries read.
func TestCutIsAPartition(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	cut := 0
	for range 3000 {
		s := randomShape(rng)
		weights := make([]int, 1+rng.IntN(9))
		for i := range weights {
			weights[i] = 1 + rng.IntN(6)
		}
		shares, err := s.Cut(weights)
		if err != nil {
			equal := s.Partition(len(weights))
			if equal == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%d ranks: ", len(weights))) {
				t.Fatalf("%+v in %v: %v, in equal parts %v", s, weights, err, equal)
			}
			continue
		}
		cut++
		checkShares(t, s, shares)
		if t.Failed() {
			t.Fatalf("%+v in %v: %+v", s, weights, shares)
		}
	}
	if cut < 1000 {
		t.Errorf("only %d models were cut", cut)
	}
}

func checkShares(t *testing.T, s plans.ModelShape, shares []plans.Share) {
	t.Helper()
	var heads, ffn, vocab int // where the next share begins
	group := s.Heads / s.KVHeads
	for _, sh := range shares {
		if sh.Heads.Lo != heads || sh.FFN.Lo != ffn || sh.Vocab.Lo != vocab || min(sh.Heads.Len(), sh.FFN.Len(),
			sh.Vocab.Len()) < 1 {
			t.Errorf("share %+v does not follow the one before it", sh)
		}
		heads, ffn, vocab = sh.Heads.Hi, sh.FFN.Hi, sh.Vocab.Hi
		if first, last := sh.Heads.Lo/group, (sh.Heads.Hi-1)/group; sh.KVHeads != (plans.Span{first, last + 1}) {
			t.Errorf("share %+v needs the KV heads %d to %d", sh, first, last)
		}
		for _, w := range s.Weights {
			rows, cols, apart := sh.Matrix(w.Role, s.HeadDim, w.N, w.K)
			block := plans.TypeBlock(w.Type)
			if rows.Lo < 0 || rows.Hi > w.N || cols.Lo%block != 0 || cols.Hi%block != 0 || cols.Hi > w.K {
				t.Errorf("%s %s: rows %v, columns %v", w.Role, w.Key(), rows, cols)
			}
			if apart == (w.Role == "router") {
				t.Errorf("%s is cut: %v", w.Role, apart)
			}
		}
	}
	if heads != s.Heads || ffn != s.FFNWidth() || vocab != s.Vocab {
		t.Errorf("the shares end at head %d, column %d and word %d", heads, ffn, vocab)
	}
}

// TestCutFollowsPUs checks that a rank with twice the PUs has about twice the work.
func TestCutFollowsPUs(t *testing.T) {
	s := plans.ModelShape{Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 11008, Vocab: 32000,
		Weights: []plans.WeightShape{{Role: "down",
			N: 4096, K: 11008, Type: "q4_0"}}}
	shares, err := s.Cut([]int{2, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := []int{shares[0].Heads.Len(), shares[1].Heads.Len(), shares[2].Heads.Len()}; !slices.Equal(got,
		[]int{16, 8, 8}) {
		t.Errorf("heads %v", got)
	}
	if n := shares[0].FFN.Len(); n != 5504 {
		t.Errorf("the first rank has %d of 11008 columns", n)
	}
}

// TestRanksOfAPlan writes a plan of four uneven ranks, reads it again, and refuses it with each
// thing that its ranks cannot have.
func TestRanksOfAPlan(t *testing.T) {
	p, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	s := plans.ModelShape{Arch: "llama", Name: "seven heads", Hidden: 256, Layers: 2, Heads: 14, KVHeads: 7,
		HeadDim: 32,
		FFN:     416, Vocab: 1003, Context: 512}
	for _, w := range []plans.WeightShape{{Role: "q", N: 448, K: 256}, {Role: "k", N: 224, K: 256}, {Role: "o", N: 256,
		K: 448}, {Role: "gate", N: 416, K: 256},
		{Role: "up", N: 416, K: 256}, {Role: "down", N: 256, K: 416}, {Role: "head", N: 1003,
			K: 256}, {Role: plans.RoleEmbed,
			N: 1003, K: 256}} {
		w.Type, w.Count = "q8_0", 1
		s.Weights = append(s.Weights, w)
	}
	plan, err := heuristic.Default(p, s, heuristic.Options{ISA: "go", TP: 4})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Exact() || plan.TP() != 4 || len(plan.Weights) != len(s.Unique()) ||
		len(plan.Decode.Tables) <= len(plan.Weights) {
		t.Errorf("exact %v, degree %d, %d weights, %d tables", plan.Exact(), plan.TP(), len(plan.Weights),
			len(plan.Decode.Tables))
	}
	b := bundletest.New(t)
	b.Plan, b.Host = *plan, *p
	again, err := bundle.Read(bundletest.Write(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Plans(plan, &again.Plan); len(d) > 0 {
		t.Errorf("read again: %v", d)
	}
	for want, change := range map[string]func(*plans.Plan){
		"rank 1 (PUs 48-95) has no PU that works in decode": func(p *plans.Plan) {
			p.Decode.PUs = p.Decode.PUs.Minus(topotree.CPURange(48, 95))
		},
		"14 heads": func(p *plans.Plan) { p.Ranks = oneEach(15); onAll(p) },
		"more than 16384 table shapes": func(p *plans.Plan) {
			p.Ranks = oneEach(1024)
			for len(p.Model.Weights) < 20 {
				p.Model.Weights = append(p.Model.Weights, p.Model.Weights[0])
			}
			onAll(p)
		},
		"tables for": func(p *plans.Plan) { p.Decode.Tables = p.Decode.Tables[1:] },
	} {
		p := *plan
		p.Weights, p.Model.Weights = slices.Clone(p.Weights), slices.Clone(p.Model.Weights)
		p.Ranks = slices.Clone(p.Ranks)
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRanksShareATable checks that two matrices whose shards have one shape must have one compute
// path.
func TestRanksShareATable(t *testing.T) {
	q, k := plans.WeightKey{N: 448, K: 256, Type: "q8_0"}, plans.WeightKey{N: 224, K: 256, Type: "q8_0"}
	p := plans.Plan{Weights: []plans.WeightPlan{{q, microkernel.ComputeF32}, {k, microkernel.ComputeInt8}}}
	if _, err := p.ComputeOf(k, []plans.WeightKey{k, q}); err == nil ||
		!strings.Contains(err.Error(),
			"compute paths int8 and f32") {
		t.Error(err)
	}
	if path, err := p.ComputeOf(k, []plans.WeightKey{q, q}); path != microkernel.ComputeF32 ||
		err != nil {
		t.Error(path, err)
	}
}

// oneEach is n ranks of one PU.
func oneEach(n int) (out []plans.Rank) {
	for i := range n {
		out = append(out, plans.Rank{PUs: topotree.NewCPUSet(i), NUMANode: -1})
	}
	return out
}

func onAll(p *plans.Plan) {
	var all topotree.CPUSet
	for _, r := range p.Ranks {
		all = all.Union(r.PUs)
	}
	p.Prefill.PUs, p.Decode.PUs = all, all
}
