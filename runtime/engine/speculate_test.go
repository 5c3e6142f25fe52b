package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/speculate"
)

// speculated is the number of random requests that `make speculation` compares for each model.
var speculated = flag.Int("speculated", 0, "random requests per model with and without drafts; 0: a few")

// draftCases are the models of TestDraftsChangeNothing, which have all kinds of stores.
var draftCases = []struct {
	family string
	typ    gguf.Type
	ranks  []int
	long   bool
	back   drafting.Rollback
}{
	{family: "llama", typ: gguf.Q8_0}, {family: "gemma2", typ: gguf.Q8_0}, {family: "qwen3moe", typ: gguf.Q8_0},
	{family: "lfm2", typ: gguf.F32, back: drafting.RollbackCopy},
	{family: "lfm2", typ: gguf.Q8_0, long: true, back: drafting.RollbackReplay},
	{family: "qwen35", typ: gguf.F32, long: true, back: drafting.RollbackCopy},
	{family: "qwen35", typ: gguf.F32, long: true, back: drafting.RollbackReplay},
	{family: "qwen3", typ: gguf.Q8_0, ranks: []int{1, 1}},
	{family: "gpt-oss", typ: gguf.F32, ranks: []int{1, 1}, long: true},
	{family: "llama4", typ: gguf.Q8_0, long: true},
	{family: "qwen3next", typ: gguf.Q8_0, long: true, back: drafting.RollbackReplay},
}

// randomRequest returns a request of random length, sampling and form.
func randomRequest(rng *rand.Rand) api.Request {
	r := api.Request{MaxTokens: 1 + rng.IntN(60), IgnoreEOS: rng.IntN(4) > 0, Class: api.Class(rng.IntN(2))}
	r.Prompt = tinyPrompt(rng.Uint64(), 1+rng.IntN(150))
	if rng.IntN(3) == 0 { // a text that repeats itself
		for i := 20; i < len(r.Prompt); i++ {
			r.Prompt[i] = r.Prompt[i-20]
		}
	}
	if rng.IntN(2) == 0 {
		r.Sampling = api.Sampling{Temperature: 1, TopK: rng.IntN(3) * 20, Seed: rng.Uint64()}
	}
	if rng.IntN(3) == 0 {
		r.Sampling.RepeatPenalty, r.Sampling.PresencePenalty = 1.2, 0.3
	}
	if rng.IntN(3) == 0 {
		r.Logprobs, r.TopLogprobs = true, rng.IntN(3)
	}
	r.OfPrompt = r.Logprobs && rng.IntN(2) == 0
	return r
}

// draftedAnswer is what a client gets.
type draftedAnswer struct {
	tokens []int32
	text   string // all that emit got
	finish api.Finish
	prompt int
	err    error
}

// ask runs a request, which a client ends after `stop` tokens if that is not 0, and which follows a
// grammar if path is not 0.
func (e *Engine) ask(r api.Request, stop int, path uint64) (a draftedAnswer, res api.Result) {
	if path != 0 {
		r.Constraint = &pathSet{at: path, whole: path%2 == 0}
	}
	res, a.err = e.Generate(context.Background(), r, func(tok api.Token) error {
		a.text += fmt.Sprint(tok)
		if !tok.Prompt {
			a.tokens = append(a.tokens, tok.ID)
		}
		if len(a.tokens) == stop && stop > 0 {
			return api.ErrStop
		}
		return nil
	})
	a.finish, a.prompt = res.Finish, res.PromptTokens
	return a, res
}

// TestDraftsChangeNothing compares random requests with and without drafts: alone and in batches of
// eight, of both classes, greedy and seeded, with penalties, log probabilities, grammars and stops.
// The drafters are always right, always wrong, of random length and quality, or find n-grams.
func TestDraftsChangeNothing(t *testing.T) {
	requests := 6
	if *speculated > 0 {
		requests = *speculated
	}
	if raceEnabled { // a smaller model is enough to find races
		o := tinyOptions(t)
		o.Queue, o.Parallel = 64, 8
		compareDrafts(t, open(t, o), 1, requests)
		return
	}
	for i, c := range draftCases {
		t.Run(fmt.Sprint(c.family, c.ranks, c.back), func(t *testing.T) {
			if c.long && *speculated == 0 {
				t.Skip("runs with `make speculation`")
			}
			o := draftOptions(t, c.family, c.typ, c.ranks)
			o.Speculation.Rollback = c.back
			compareDrafts(t, open(t, o), uint64(i), requests)
		})
	}
}

// draftWith makes an idle engine draft, as if it had been opened with these options.
func (e *Engine) draftWith(o drafting.Options) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, _, err := newDrafting(o, e.runner, nil, e.drafting.Rows())
	if err != nil {
		panic(err) // newEngine has made one for the same plan
	}
	*e.drafting = *d
}

func draftOptions(t *testing.T, family string, typ gguf.Type, ranks []int) Options {
	t.Helper()
	c, ok := synth.Tiny(family)
	if !ok {
		t.Fatalf("no family %s", family)
	}
	if c.Vocab, c.Context = tinyVocab, 1024; len(c.KVHeadsOf) == 0 {
		c.Layers = 4
	}
	if c.Windows.Size > 0 {
		c.Windows.Size = 70
	}
	file := fileOf(t, c, typ)
	o := optionsFor(t, file)
	if ranks != nil {
		plan, err := planFor(t, file, heuristic.Options{Service: crews(ranks...)})
		if err != nil {
			t.Fatal(err)
		}
		plan.Chunk, o.Plan, o.Unpinned = 32, plan, true
	}
	o.Queue, o.Parallel, o.IsEnd = 64, 8, func(id int32) bool { return id%97 == 5 }
	return o
}

// compareDrafts runs random requests without drafts and with those of several drafters.
func compareDrafts(t *testing.T, e *Engine, seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, 9))
	requests, stops, paths := make([]api.Request, n), make([]int, n), make([]uint64, n)
	want, free := make([]draftedAnswer, n), make([][]int32, n)
	for i := range requests {
		requests[i] = randomRequest(rng)
		if rng.IntN(4) == 0 {
			stops[i] = 1 + rng.IntN(20)
		}
		if rng.IntN(4) == 0 {
			paths[i] = rng.Uint64()
		}
		want[i], _ = e.ask(requests[i], stops[i], paths[i])
		whole, _ := e.ask(requests[i], 0, paths[i])
		if free[i] = whole.tokens; want[i].err != nil {
			t.Fatal(want[i].err)
		}
	}
	for name, drafts := range map[string]drafting.Options{
		"right":  {Drafter: &speculate.Replay{Accept: 1}, Depth: 15},
		"wrong":  {Drafter: &speculate.Replay{Accept: 0}, Depth: 3},
		"random": {Drafter: &speculate.Replay{Accept: 0.7, Lengths: true, Seed: seed}, Depth: 15},
		"gain":   {Drafter: &speculate.Replay{Accept: 0.7, Seed: seed}},
		"ngram":  {Drafter: speculate.NewNGram(1 << 20), Depth: 6},
	} {
		if r, ok := drafts.Drafter.(*speculate.Replay); ok {
			r.Vocab = tinyVocab
			for i := range requests {
				r.Record(requests[i].Prompt, free[i])
			}
		}
		e.draftWith(drafts)
		compareAnswers(t, e, name, requests, stops, paths, want)
	}
}

func compareAnswers(t *testing.T, e *Engine, name string, requests []api.Request, stops []int, paths []uint64,
	want []draftedAnswer) {
	t.Helper()
	check := func(i int, how string) {
		got, res := e.ask(requests[i], stops[i], paths[i])
		if got.text != want[i].text || got.finish != want[i].finish || got.prompt != want[i].prompt || got.err != nil {
			t.Errorf("%s drafts, request %d %s: %v\n%+v\nwant %v\n%+v", name, i, how, got.finish, got.text,
				want[i].finish, want[i].text)
		}
		if res.Tokens != len(got.tokens) || res.AcceptedTokens > res.DraftedTokens ||
			res.AcceptedTokens > res.Tokens {
			t.Errorf("%s drafts, request %d %s: %+v for %d tokens", name, i, how, res, len(got.tokens))
		}
	}
	for i := range requests[:len(requests)/3] {
		check(i, "alone")
	}
	for batch := range slices.Chunk(slices.Collect(intsFrom(len(requests)/3, len(requests))), 8) {
		var all sync.WaitGroup
		for _, i := range batch {
			all.Go(func() { check(i, "in a batch") })
		}
		all.Wait()
	}
	st := e.Stats()
	d := st.Drafts[0]
	switch {
	case d.Drafted == 0 && name != "ngram" && name != "gain":
		t.Errorf("%s: nothing was drafted: %+v", name, st.Counts)
	case name == "right" && d.Accepted < d.Drafted/2, name == "wrong" && d.Accepted > 0:
		t.Errorf("%s drafts: %+v", name, d)
	}
	checkIdleSoon(t, e)
}

func intsFrom(from, to int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := from; i < to && yield(i); i++ {
		}
	}
}

// TestDraftsHangUp checks that a request that is cancelled in the middle of a verified step leaves
// no state.
func TestDraftsHangUp(t *testing.T) {
	o := tinyOptions(t)
	prompt := tinyPrompt(4, 30)
	answer, _ := generate(t, open(t, o), api.Request{Prompt: prompt, MaxTokens: 60, IgnoreEOS: true})
	replay := &speculate.Replay{Accept: 1, Vocab: tinyVocab}
	replay.Record(prompt, answer)
	o.Speculation = drafting.Options{Drafter: replay, Depth: 15}
	e := open(t, o)
	for n := range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		got := 0
		req := api.Request{Prompt: prompt, MaxTokens: 60, IgnoreEOS: true}
		_, err := e.Generate(ctx, req, func(tok api.Token) error {
			if tok.ID != answer[got] {
				t.Errorf("token %d is %d, want %d", got, tok.ID, answer[got])
			}
			if got++; got == n {
				cancel()
			}
			return ctx.Err()
		})
		cancel()
		if n > 0 && !errors.Is(err, context.Canceled) {
			t.Errorf("after %d tokens: %v", n, err)
		}
	}
	checkIdleSoon(t, e)
}

// evenTokens is a constraint that allows tokens with even ids.
type evenTokens struct{ mask []uint64 }

func (e *evenTokens) Allowed(int) []uint64 {
	for i := range e.mask {
		e.mask[i] = 0x5555555555555555
	}
	return e.mask
}

func (*evenTokens) Only(int) (int32, bool) { return 0, false }

func (*evenTokens) Accept(id int32) error {
	if id%2 != 0 {
		return errors.New("an odd token")
	}
	return nil
}

func (*evenTokens) MustEnd() bool { return false }

// TestDraftsForbidden checks an answer under a constraint that forbids every drafted token, up to
// the last position of the context: its tokens are those without drafts, and none is accepted.
func TestDraftsForbidden(t *testing.T) {
	o := tinyOptions(t)
	e := open(t, o)
	prompt := tinyPrompt(4, o.Context-50)
	odd := slices.Repeat([]int32{1, 3, 5, 7}, 50)
	ask := func() ([]int32, api.Result) {
		return generate(t, e, api.Request{Prompt: prompt, IgnoreEOS: true,
			Constraint: &evenTokens{mask: make([]uint64, (tinyVocab+63)/64)}})
	}
	want, _ := ask()
	for _, depth := range []int{0, 1, 15, 1000} {
		replay := &speculate.Replay{Accept: 1, Vocab: tinyVocab}
		replay.Record(prompt, odd)
		e.draftWith(drafting.Options{Drafter: replay, Depth: depth})
		got, res := ask()
		if !slices.Equal(got, want) || res.AcceptedTokens != 0 || res.DraftedTokens == 0 && depth > 0 {
			t.Errorf("depth %d: %d tokens, want %d; %+v", depth, len(got), len(want), res)
		}
	}
	if len(want) != 50 {
		t.Errorf("%d tokens fill the context, want 50", len(want))
	}
	checkIdleSoon(t, e)
}

// TestDraftsAtMemoryBound checks answers while the memory of prompt lookup is full: they are those
// without drafts, and the bound holds.
func TestDraftsAtMemoryBound(t *testing.T) {
	e := open(t, tinyOptions(t))
	requests := make([]api.Request, 6)
	want := make([][]int32, len(requests))
	for i := range requests {
		requests[i] = api.Request{Prompt: slices.Repeat(tinyPrompt(uint64(i), 20), 3), MaxTokens: 40, IgnoreEOS: true}
		want[i], _ = generate(t, e, requests[i])
	}
	for _, bound := range []int64{0, 1 << 10, 4 << 10} {
		e.draftWith(drafting.Options{Drafter: speculate.NewNGram(bound), Depth: 5})
		var all sync.WaitGroup
		for i := range requests {
			all.Go(func() {
				if got, _ := generate(t, e, requests[i]); !slices.Equal(got, want[i]) {
					t.Errorf("request %d with %d bytes: %v, want %v", i, bound, got, want[i])
				}
			})
		}
		all.Wait()
		if n := e.Stats().Drafts[0].Bytes; n > bound {
			t.Errorf("prompt lookup uses %d bytes of %d", n, bound)
		}
	}
	checkIdleSoon(t, e)
}
