package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"sandwich/runtime/api"
)

// TestRecentTexts checks where prompts differ from the texts before them.
func TestRecentTexts(t *testing.T) {
	ours, theirs := [32]byte{1}, [32]byte{2}
	var r recentTexts
	r.add(ours, []int32{1, 2, 3, 4})
	r.add(ours, []int32{1, 2, 9, 9, 9})
	r.add(ours, nil)
	for _, c := range []struct {
		salt   [32]byte
		prompt []int32
		want   int
	}{
		{ours, []int32{1, 2, 3, 5}, 3}, {ours, []int32{1, 2, 9, 9, 8, 7}, 4}, {ours, []int32{1, 2, 7}, 2},
		{ours, []int32{5}, 0}, {ours, []int32{1, 2, 3, 4, 5}, -1}, {ours, []int32{1, 2}, -1},
		{ours, []int32{1, 2, 3, 4}, -1}, {theirs, []int32{1, 2, 3, 5}, -1},
	} {
		if got := r.diverged(c.salt, c.prompt); got != c.want {
			t.Errorf("%v diverged at %d, want %d", c.prompt, got, c.want)
		}
	}
	// A text that continues an earlier one replaces it.
	r.add(ours, []int32{1, 2, 3, 4, 5, 6})
	if len(r.texts) != 2 || r.tokens != 11 {
		t.Errorf("%d texts of %d tokens", len(r.texts), r.tokens)
	}
	for i := range int32(3 * maxRecent) {
		r.add(theirs, []int32{i, i, i})
	}
	if len(r.texts) != maxRecent || r.tokens != 3*maxRecent || r.diverged(ours, []int32{1, 3}) != -1 {
		t.Errorf("%d texts of %d tokens", len(r.texts), r.tokens)
	}
	r.add(theirs, make([]int32, maxRecentTokens+1))
	for i := range int32(4) {
		r.add(theirs, slices.Repeat([]int32{-i}, maxRecentTokens/2))
	}
	if len(r.texts) != 2 || r.tokens > maxRecentTokens {
		t.Errorf("%d texts of %d tokens", len(r.texts), r.tokens)
	}
}

// TestDiverged checks that a request reports how much of its prompt is cached, and where it differs
// from the most similar earlier text of its key: a prompt or an answer.
func TestDiverged(t *testing.T) {
	o := tinyOptions(t)
	o.Blocks = 64
	e := open(t, o)
	ask := func(salt byte, prompt []int32) (string, []int32) {
		t.Helper()
		var q api.Queue
		var said []int32
		_, err := e.Generate(context.Background(), api.Request{Prompt: prompt, MaxTokens: 4, IgnoreEOS: true,
			Salt: [32]byte{salt}, Queued: func(stood api.Queue) { q = stood }}, func(tok api.Token) error {
			if tok.ID != api.NoToken {
				said = append(said, tok.ID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d of %d, %d", q.Cached, q.Prompt, q.Diverged), said
	}
	changed := func(prompt []int32, i int) []int32 {
		prompt = slices.Clone(prompt)
		prompt[i] ^= 1
		return prompt
	}
	prompt := tinyPrompt(5, 150)
	got, said := ask(1, prompt)
	whole := slices.Concat(prompt, said)
	for _, c := range []struct {
		salt   byte
		prompt []int32
		want   string
	}{
		{0, nil, "0 of 150, -1"},
		{1, prompt, "128 of 150, -1"},
		{1, changed(prompt, 37), "0 of 150, 37"},
		{1, changed(prompt, 100), "64 of 150, 100"},
		{1, append(slices.Clone(whole), 7, 8), "128 of 156, -1"},
		{1, append(changed(whole, 152), 7, 8), "128 of 156, 152"},
		{2, changed(prompt, 37), "0 of 150, -1"},
	} {
		if c.prompt != nil {
			got, _ = ask(c.salt, c.prompt)
		}
		if got != c.want {
			t.Errorf("cached and diverged: %s, want %s", got, c.want)
		}
	}
	before := e.recent.tokens
	generate(t, e, api.Request{Prompt: prompt, MaxTokens: 2, Salt: [32]byte{9}})
	if e.recent.tokens != before {
		t.Errorf("a request that does not ask keeps %d tokens", e.recent.tokens-before)
	}
}
