package engine

import (
	"context"
	"slices"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
)

// TestAChatGoesOn checks that a conversation which is sent again with one more message reuses the
// longest common prefix up to one block: with and without windowed layers, after an answer with and
// without its reasoning, and after a canceled request. The answers must equal those of a fresh
// engine.
func TestAChatGoesOn(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"llama", "gemma3", "gemma4", "gpt-oss", "llama4", "deepseek2"} {
		t.Run(family, func(t *testing.T) {
			o := optionsFor(t, familyFile(t, family, gguf.F32))
			o.Context, o.Parallel = 400, 2
			e, fresh, salt := open(t, o), open(t, o), byte(0)
			ask := func(e *Engine, prompt []int32, salt byte, stopAfter int) (answer []int32, cached int) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := api.Request{Prompt: prompt, MaxTokens: 40, IgnoreEOS: true, Salt: [32]byte{salt}}
				res, err := e.Generate(ctx, r, func(tok api.Token) error {
					if answer = append(answer, tok.ID); len(answer) == stopAfter {
						cancel()
					}
					return nil
				})
				if err != nil && stopAfter == 0 {
					t.Error(err)
				}
				return answer, res.CachedTokens
			}
			again := func(what string, prompt []int32, equal int) {
				answer, cached := ask(e, prompt, 0, 0)
				if cached < equal-kvcache.BlockTokens {
					t.Errorf("%s: %d of %d equal tokens were reused", what, cached, equal)
				}
				salt++ // nothing of an earlier question
				if want, reused := ask(fresh, prompt, salt, 0); !slices.Equal(answer, want) || reused > 0 {
					t.Errorf("%s: other tokens than without reuse (%d reused there)", what, reused)
				}
			}
			first := exactPrompt(9)[:200]
			answer, _ := ask(e, first, 0, 0)
			stripped := slices.Concat(first, answer[25:], exactPrompt(3)[:60])
			again("an answer without its reasoning", stripped, len(first))
			again("a whole answer", slices.Concat(first, answer, exactPrompt(4)[:60]), len(first)+len(answer)-1)

			other := exactPrompt(11)[:230]
			ask(e, other, 0, 3)
			checkIdleSoon(t, e)
			again("a request that was given up", slices.Concat(other, exactPrompt(5)[:60]), len(other))
		})
	}
}

// TestFamiliesHeld checks that a prefill which halts after every op computes the same bits as one
// without halts, with and without cut ops.
func TestFamiliesHeld(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"gemma3", "gemma4", "gemma4-moe", "gpt-oss", "llama4", "deepseek2",
		"deepseek2-lite"} {
		t.Run(family, func(t *testing.T) {
			o := heuristic.Options{Compute: "int8", Threads: 2}
			r := openTestRunner(t, familyFile(t, family, gguf.Q8_0), o, 64)
			defer r.Close()
			if err := r.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.Lead(func(l *pool.Leader) { checkHeld(t, r, l, r.Ops()-1, nil) })
		})
	}
}

// TestAChatGoesOnBehindAPreemption checks that a preempted conversation reuses the blocks that were
// not taken, when it resumes and when it is sent again, for full, windowed and recurrent layers.
// Its tokens must equal those of a fresh engine.
func TestAChatGoesOnBehindAPreemption(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"llama", "gemma3", "qwen35"} {
		o := optionsFor(t, familyFile(t, family, gguf.F32))
		o.Context, o.Blocks, o.Parallel = 700, 14, 2
		e := byHand(t, o)
		long := api.Request{Prompt: exactPrompt(9)[:400], MaxTokens: 120, IgnoreEOS: true, Class: api.Proactive}
		var answer, got []int32
		var again api.Request
		e.runner.Lead(func(l *pool.Leader) {
			j := e.enter(t, long)
			take := func() int {
				ids, _ := j.drained()
				answer = append(answer, ids...)
				return len(answer)
			}
			for take() < 3 && e.forward(l) != nil {
			}
			e.enter(t, api.Request{Prompt: exactPrompt(11)[:430], MaxTokens: 60, IgnoreEOS: true})
			for e.forward(l) != nil {
			}
			if n := take(); n != long.MaxTokens {
				t.Errorf("%s: %d tokens", family, n)
				return
			}
			s := e.Stats().Scheduler
			if s.Preemptions == 0 || s.ReusedTokens < 384 {
				t.Errorf("%s: %d preemptions, %d tokens reused", family, s.Preemptions, s.ReusedTokens)
			}
			again = api.Request{Prompt: slices.Concat(long.Prompt, answer[100:], exactPrompt(3)[:30]), MaxTokens: 20,
				IgnoreEOS: true}
			j = e.enter(t, again)
			for e.forward(l) != nil {
			}
			if got, _ = j.drained(); j.cached < len(long.Prompt)-kvcache.BlockTokens {
				t.Errorf("%s: %d of %d equal tokens were reused", family, j.cached, len(long.Prompt))
			}
		})
		if want := alone(t, o, again); !slices.Equal(got, want) {
			t.Errorf("%s: %v, alone %v", family, got, want)
		}
		if want := alone(t, o, long); !slices.Equal(answer, want) {
			t.Errorf("%s: the preempted answer has other tokens than alone", family)
		}
	}
}
