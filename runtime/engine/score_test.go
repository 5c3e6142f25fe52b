package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/pool"
)

// promptScores are what a request of a prompt's log probabilities must get, computed without a
// scheduler.
func promptScores(t *testing.T, prompt []int32, top int) (want []api.Token) {
	t.Helper()
	e := byHand(t, tinyOptions(t))
	want = append(want, api.Token{Prompt: true}) // the first has none
	e.runner.Lead(func(l *pool.Leader) {
		err := NewSequence(e.runner, l).Feed(prompt, 3, AllLogits, func(pos int, logits []float32) error {
			if pos+1 < len(prompt) {
				own, likeliest := e.buffer.Logprobs(logits, prompt[pos+1], top)
				want = append(want, api.Token{TokenLogprob: own, Top: likeliest, Prompt: true})
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	return want
}

// TestStopInPrompt checks that emit can end an answer at a token of the prompt.
func TestStopInPrompt(t *testing.T) {
	e := open(t, tinyOptions(t))
	res, err := e.Generate(t.Context(), api.Request{Prompt: tinyPrompt(1, 20), MaxTokens: 5, Logprobs: true,
		OfPrompt: true}, func(tok api.Token) error { return api.ErrStop })
	if err != nil || res.Finish != api.FinishStop || res.Tokens != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestPromptLogprobs checks that the tokens of a prompt come first and once, with the model's log
// probabilities: alone, in a batch, and with preemption. The generated tokens must be those of a
// request without log probabilities.
func TestPromptLogprobs(t *testing.T) {
	prompt := tinyPrompt(1, 90)
	want := promptScores(t, prompt, 2)
	o := tinyOptions(t)
	o.Context, o.Queue, o.Blocks = 192, 64, 5
	e := open(t, o)
	req := api.Request{Prompt: prompt, MaxTokens: 60, IgnoreEOS: true, Logprobs: true, TopLogprobs: 2}
	answer, _ := generate(t, e, req)
	var all sync.WaitGroup
	clients := 60 // so many that some meet, however busy the machine is
	if raceEnabled {
		clients = 20 // who stay longer
	}
	for i := range clients {
		all.Go(func() {
			r := req
			r.Class = api.Class(i % 2)
			if r.OfPrompt = i%3 == 0; !r.OfPrompt {
				r.Prompt = tinyPrompt(uint64(i), 60+10*(i%12))
			}
			var got []api.Token
			var ids []int32
			res, err := e.Generate(context.Background(), r, func(tok api.Token) error {
				if tok.Prompt {
					tok.Piece = ""
					for i := range tok.Top {
						tok.Top[i].Piece = ""
					}
					got = append(got, tok)
				} else if tok.ID >= 0 {
					ids = append(ids, tok.ID)
				}
				return nil
			})
			switch {
			case err != nil:
				t.Error(err)
			case !r.OfPrompt && len(got) > 0:
				t.Errorf("client %d was told of its prompt", i)
			case r.OfPrompt && (!slices.EqualFunc(got[1:], want[1:], sameToken) || !slices.Equal(ids, answer)):
				t.Errorf("client %d: %d tokens of the prompt and %v behind them, want %d and %v", i, len(got), ids,
					len(want), answer)
			case res.Tokens != 60 && r.OfPrompt:
				t.Errorf("client %d was charged %d tokens", i, res.Tokens)
			}
		})
	}
	all.Wait()
	if e.Stats().Scheduler.Preemptions == 0 {
		t.Error("no request lost blocks: the test tests nothing")
	}
	checkIdleSoon(t, e)
}

func sameToken(a, b api.Token) bool {
	return a.TokenLogprob == b.TokenLogprob && slices.Equal(a.Top, b.Top)
}

// TestPromptOnly checks that a request for the prompt only generates nothing, and that the next
// request finds its prefix.
func TestPromptOnly(t *testing.T) {
	e := open(t, tinyOptions(t))
	prompt := tinyPrompt(1, 100)
	for _, of := range []bool{false, true} {
		n := 0
		res, err := e.Generate(context.Background(), api.Request{Prompt: prompt, PromptOnly: true, Logprobs: of,
			OfPrompt: of}, func(tok api.Token) error { n++; return nil })
		if err != nil || res.Tokens != 0 || res.Finish != api.FinishLength || of && n != len(prompt) || !of && n != 0 {
			t.Errorf("%+v, %v, %d tokens", res, err, n)
		}
	}
	if _, res := generate(t, e, api.Request{Prompt: prompt, MaxTokens: 1}); res.CachedTokens != 64 {
		t.Errorf("%+v", res)
	}
	_, err := e.Generate(context.Background(), api.Request{Prompt: prompt,
		Sampling: api.Sampling{Bias: map[int32]float32{tinyVocab: 1}}}, nil)
	var invalid *api.InvalidError
	if !errors.As(err, &invalid) || invalid.Param != "logit_bias" {
		t.Errorf("%v", err)
	}
}
