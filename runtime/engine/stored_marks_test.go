package engine

import (
	"slices"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache/disk"
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

// gatedFiles lets the first opens pass and blocks later ones until released.
type gatedFiles struct {
	disk.Files
	passes  chan struct{}
	release chan struct{}
}

func (f *gatedFiles) Open(path string) (disk.File, error) {
	select {
	case f.passes <- struct{}{}:
	case <-f.release:
	}
	return f.Files.Open(path)
}

// TestLoadReportsProgress checks that a request reports the loaded part of its prompt while further
// blocks are being read.
func TestLoadReportsProgress(t *testing.T) {
	o, dir := tinyOptions(t), t.TempDir()
	req := api.Request{Prompt: tinyPrompt(7, 230), Keep: true}
	restarted(t, withStore(t, o, dir, nil), func(e *Engine) { ask(t, e, req) })
	files := &gatedFiles{disk.HostFiles(), make(chan struct{}, 1), make(chan struct{})}
	restarted(t, withStore(t, o, dir, files), func(e *Engine) {
		part := 0
		req.Progress = func(p api.Progress) {
			if part == 0 {
				part = p.Done
				close(files.release)
			}
		}
		if got := ask(t, e, req); part != 64 || got.CachedTokens != 192 {
			t.Errorf("progress of %d tokens while blocks were being read, then %d tokens were loaded", part,
				got.CachedTokens)
		}
	})
}
