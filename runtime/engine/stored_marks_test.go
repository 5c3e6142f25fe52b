package engine

import (
	"slices"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/gguf"
)

// TestMarkedPrefixIsStored checks for every kind of store that a prompt is stored up to its last
// mark when it is seen first, that other prompts continue at each mark, and that nothing after the
// last mark is stored.
func TestMarkedPrefixIsStored(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"llama", "gemma3", "qwen35"} {
		o, dir := planned(t, familyFile(t, family, gguf.Q8_0), heuristic.Options{Threads: 1}), t.TempDir()
		first := exactPrompt(1)[:400]
		prompts := []api.Request{{Prompt: slices.Concat(first[:140], exactPrompt(2)[:90])},
			{Prompt: slices.Concat(first[:270], exactPrompt(3)[:50])}, {Prompt: first}}
		var want []answered
		restarted(t, o, func(e *Engine) {
			for _, p := range prompts {
				want = append(want, ask(t, e, p))
			}
		})
		restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
			ask(t, e, api.Request{Prompt: first, Marks: []int{130, 260}})
			flush(t, e)
		})
		for i, loaded := range []int{128, 256, 256} {
			restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
				got := ask(t, e, prompts[i])
				if !got.equal(&want[i]) || got.CachedTokens != loaded {
					t.Errorf("%s, prompt %d: %d tokens were loaded, want %d; tokens %v, want %v", family, i,
						got.CachedTokens, loaded, got.ids, want[i].ids)
				}
			})
		}
	}
}
