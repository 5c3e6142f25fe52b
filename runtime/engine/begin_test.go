package engine

import (
	"sync"
	"testing"

	"sandwich/runtime/api"
)

// TestNothingToPrefill runs prompts whose first forward is a decode: all but the last token is
// cached, or there is only one token. Their queue time is not negative and their cached tokens are
// counted, alone and in a batch with others.
func TestNothingToPrefill(t *testing.T) {
	e := open(t, tinyOptions(t))
	for _, c := range []struct{ tokens, cached int }{{129, 128}, {65, 64}, {193, 192}, {1, 0}, {130, 128}} {
		r := api.Request{Prompt: tinyPrompt(uint64(c.tokens), c.tokens), MaxTokens: 2, IgnoreEOS: true}
		generate(t, e, r)
		_, res := generate(t, e, r)
		if res.CachedTokens != c.cached || res.Queued < 0 || res.Queued > res.FirstToken {
			t.Errorf("%d tokens again: %+v, want %d cached", c.tokens, res, c.cached)
		}
	}
	r := api.Request{Prompt: tinyPrompt(129, 129), MaxTokens: 4, IgnoreEOS: true}
	generate(t, e, r) // its blocks gave way to those above
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			res, err := e.Generate(t.Context(), r, func(api.Token) error { return nil })
			if err != nil || res.CachedTokens != 128 || res.Queued < 0 || res.Queued > res.FirstToken {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	all.Wait()
}
