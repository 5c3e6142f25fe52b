package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/runtime/sched"
)

// TestSameInBatch checks that a request gives the same tokens and log probabilities alone and among
// eight requests of other lengths and classes, at temperature 0 and with a seed.
func TestSameInBatch(t *testing.T) {
	o := tinyOptions(t)
	o.Parallel, o.Queue = 9, 16
	e := open(t, o)
	request := func(i int) api.Request {
		r := api.Request{
			Prompt: tinyPrompt(uint64(i), 5+17*i), MaxTokens: 12, IgnoreEOS: true, Logprobs: true, TopLogprobs: 3,
		}
		if i%2 == 1 {
			r.Class = sched.Proactive
		}
		if i%3 == 2 {
			r.Sampling = api.Sampling{Temperature: 0.9, TopK: 50, TopP: 0.95, Seed: uint64(i)}
		}
		return r
	}
	type answer struct {
		tokens []api.Token
		err    error
	}
	ask := func(i int) (a answer) {
		_, a.err = e.Generate(context.Background(), request(i), func(tok api.Token) error {
			a.tokens = append(a.tokens, tok)
			return nil
		})
		return a
	}
	var alone, together [9]answer
	for i := range alone {
		alone[i] = ask(i)
	}
	var all sync.WaitGroup
	for i := range together {
		all.Go(func() { together[i] = ask(i) })
	}
	all.Wait()
	for i := range alone {
		if alone[i].err != nil || together[i].err != nil {
			t.Fatal(alone[i].err, together[i].err)
		}
		if fmt.Sprint(alone[i].tokens) != fmt.Sprint(together[i].tokens) {
			t.Errorf("request %d: alone %v\nin a batch %v", i, alone[i].tokens, together[i].tokens)
		}
	}
	checkIdleSoon(t, e)
}

func TestSeed(t *testing.T) {
	e := open(t, tinyOptions(t))
	req := api.Request{Prompt: tinyPrompt(1, 9), MaxTokens: 40, IgnoreEOS: true}
	req.Sampling = api.Sampling{Temperature: 1.2, Seed: 5}
	first, _ := generate(t, e, req)
	again, _ := generate(t, e, req)
	if !slices.Equal(first, again) {
		t.Errorf("one seed gave two answers: %v and %v", first, again)
	}
	req.Sampling.Seed = 6
	other, _ := generate(t, e, req)
	if slices.Equal(first, other) {
		t.Errorf("another seed gave the same 40 tokens")
	}
}

func TestResultCounts(t *testing.T) {
	e := open(t, tinyOptions(t))
	prompt := tinyPrompt(2, 130)
	_, cold := generate(t, e, api.Request{Prompt: prompt, MaxTokens: 3, IgnoreEOS: true})
	if cold.Finish != "length" || cold.Tokens != 3 || cold.PromptTokens != 130 || cold.CachedTokens != 0 {
		t.Errorf("first answer: %+v", cold)
	}
	_, warm := generate(t, e, api.Request{Prompt: prompt, MaxTokens: 3, IgnoreEOS: true})
	if warm.CachedTokens != 128 {
		t.Errorf("%d tokens of the same prompt were reused, not its two full blocks", warm.CachedTokens)
	}
	salted := api.Request{Prompt: prompt, MaxTokens: 3, IgnoreEOS: true, Salt: kvcache.Salt{1}}
	if _, foreign := generate(t, e, salted); foreign.CachedTokens != 0 {
		t.Errorf("%d tokens cached under another salt were reused", foreign.CachedTokens)
	}
	if _, own := generate(t, e, salted); own.CachedTokens != 128 {
		t.Errorf("%d tokens cached under the same salt were reused, not 128", own.CachedTokens)
	}
	// max_tokens beyond the context is cut to it.
	_, cut := generate(t, e, api.Request{Prompt: prompt, MaxTokens: 100000, IgnoreEOS: true})
	if cut.Finish != "length" || cut.Tokens != 256-130 {
		t.Errorf("a limit beyond the context: %+v", cut)
	}
	if cut.Queued < 0 || cut.FirstToken <= 0 || cut.Total < cut.FirstToken {
		t.Errorf("times out of order: %+v", cut)
	}
}

func TestRefusals(t *testing.T) {
	e := open(t, tinyOptions(t))
	var long *api.TooLongError
	var invalid *api.InvalidError
	for _, c := range []struct {
		prompt []int32
		is     func(error) bool
	}{
		{nil, func(err error) bool { return errors.As(err, &invalid) && strings.Contains(err.Error(), "empty") }},
		{tinyPrompt(1, 256), func(err error) bool {
			return errors.As(err, &long) && long.PromptTokens == 256 && long.Context == 256
		}},
		{tinyPrompt(1, 100000), func(err error) bool { return errors.As(err, &long) && long.PromptTokens == 100000 }},
		{[]int32{5, tinyVocab}, func(err error) bool {
			at := fmt.Sprintf("token 1 of the prompt has id %d, outside the vocabulary of %d", tinyVocab, tinyVocab)
			return errors.As(err, &invalid) && err.Error() == at
		}},
		{[]int32{-1}, func(err error) bool {
			return errors.As(err, &invalid) && strings.Contains(err.Error(),
				"id -1")
		}},
	} {
		_, err := e.Generate(context.Background(), api.Request{Prompt: c.prompt}, nil)
		if !c.is(err) {
			t.Errorf("a prompt of %d tokens: %v", len(c.prompt), err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Generate(ended, api.Request{Prompt: tinyPrompt(1, 3)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was cancelled before it began: %v", err)
	}
	checkIdleSoon(t, e)
}

// TestQueueFull checks that a request that exceeds the queue is refused while a forward is still in
// flight, and that the place of a cancelled request is free at once.
func TestQueueFull(t *testing.T) {
	o := tinyOptions(t)
	o.Parallel, o.Queue = 1, 2
	e := byHand(t, o)
	e.enter(t, api.Request{Prompt: tinyPrompt(1, 40)})
	act := e.driver.Next()
	if act == nil || act.Kind != sched.Prefill {
		t.Fatalf("no prefill is in flight but %+v", act)
	}
	waiting := []*job{e.enter(t, api.Request{Prompt: tinyPrompt(2, 4)}),
		e.enter(t, api.Request{Prompt: tinyPrompt(3, 4)})}
	var full *api.QueueFullError
	_, err := e.Generate(context.Background(), api.Request{Prompt: tinyPrompt(4, 4)}, nil)
	if !errors.As(err, &full) || full.RetryAfter <= 0 {
		t.Errorf("the third in a queue of two: %v", err)
	}
	e.cancel(waiting[0])
	next := e.enter(t, api.Request{Prompt: tinyPrompt(5, 4)})
	if _, end := next.drained(); end != nil {
		t.Errorf("a place was free, but: %v", end.err)
	}
}

// TestLogprobs checks that the log probabilities of a token sum to one, are sorted, and that the
// likeliest token is drawn at temperature 0.
func TestLogprobs(t *testing.T) {
	o := tinyOptions(t)
	e := open(t, o)
	var tokens []api.Token
	req := api.Request{
		Prompt: tinyPrompt(7, 5), MaxTokens: 8, IgnoreEOS: true, Logprobs: true, TopLogprobs: tinyVocab,
	}
	_, err := e.Generate(context.Background(), req,
		func(tok api.Token) error { tokens = append(tokens, tok); return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range tokens {
		if tok.ID < 0 {
			continue
		}
		sum := 0.0
		for i, c := range tok.Top {
			sum += math.Exp(float64(c.Logprob))
			if i > 0 && c.Logprob > tok.Top[i-1].Logprob {
				t.Errorf("token %d: alternative %d is likelier than the one before", tok.ID, i)
			}
		}
		if len(tok.Top) != tinyVocab || math.Abs(sum-1) > 1e-4 {
			t.Errorf("token %d: %d probabilities with sum %v", tok.ID, len(tok.Top), sum)
		}
		if tok.Top[0] != tok.TokenLogprob {
			t.Errorf("the likeliest token is %v, drawn was %d with %v", tok.Top[0], tok.ID, tok.Logprob)
		}
	}
}

// TestCloseTwice checks that every call of Close returns, and that later requests are refused.
func TestCloseTwice(t *testing.T) {
	e, err := New(t.Context(), tinyOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(e.Close)
	}
	both.Wait()
	_, err = e.Generate(context.Background(), api.Request{Prompt: tinyPrompt(1, 3)}, nil)
	if !errors.Is(err, api.ErrClosed) {
		t.Errorf("a closed engine answered %v", err)
	}
	if !errors.Is(e.Stats().Failed, api.ErrClosed) {
		t.Errorf("its state is %v", e.Stats().Failed)
	}
}

// TestFinishedGivesPlace checks that a request which is submitted when a client has received the
// end of an answer finds the place and the blocks of that answer free, although the scheduler
// processes the end with its next step.
func TestFinishedGivesPlace(t *testing.T) {
	o := tinyOptions(t)
	o.Parallel, o.Queue, o.Blocks = 1, 1, 4
	e := byHand(t, o)
	e.runner.Lead(func(l *pool.Leader) {
		first := e.enter(t, api.Request{Prompt: tinyPrompt(1, 200), MaxTokens: 1, IgnoreEOS: true})
		var end *ending
		for end == nil && e.forward(l) != nil {
			_, end = first.drained()
		}
		if end == nil || e.sched.Live() != 1 {
			t.Errorf("the first ended with %+v, %d requests are live: want an ending of one still there", end,
				e.sched.Live())
		}
		jobs := []*job{
			e.enter(t, api.Request{Prompt: tinyPrompt(2, 200), MaxTokens: 2, IgnoreEOS: true}),
			e.enter(t, api.Request{Prompt: tinyPrompt(3, 200), MaxTokens: 2, IgnoreEOS: true}),
		}
		for e.forward(l) != nil {
		}
		for i, j := range jobs {
			if ids, end := j.drained(); len(ids) != 2 || end == nil || end.err != nil {
				t.Errorf("request %d: %v, %+v", i, ids, end)
			}
		}
	})
	checkIdle(t, e)
}

// checkIdleSoon is checkIdle for an engine whose loop runs: requests that finished or were
// cancelled are removed by its next step, and the writer of prefixes pins one block at a time.
func checkIdleSoon(t testing.TB, e *Engine) {
	t.Helper()
	soon(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		st := e.sched.Stats()
		return e.driver.Idle() && st.Free == st.Blocks
	})
	checkIdle(t, e)
}

// TestTooBig checks that sizes that exceed the memory are refused with the numbers before anything
// is loaded.
func TestTooBig(t *testing.T) {
	if mem.Available() <= 0 {
		t.Skip("the available memory is unknown: needs Linux with /proc mounted")
	}
	for _, o := range []func(*Options){
		func(o *Options) { o.Parallel = 1 << 30 },
		func(o *Options) { o.Blocks = 1 << 40 },
		func(o *Options) { o.Blocks = math.MaxInt64 / 2 },
		func(o *Options) { o.Parallel = math.MaxInt64 / 2 },
	} {
		big := tinyOptions(t)
		o(&big)
		e, err := New(t.Context(), big)
		if err == nil {
			e.Close()
			t.Fatal("an engine larger than any memory was made")
		}
		if !strings.Contains(err.Error(), "GiB") && !strings.Contains(err.Error(), "no machine") ||
			!strings.Contains(err.Error(), "--parallel") {
			t.Errorf("%v", err)
		}
	}
}
