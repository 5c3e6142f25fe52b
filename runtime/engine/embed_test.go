package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
)

// pooledFile is a model that is quick even where kernels are plain Go.
func pooledFile(t testing.TB, family string) *gguf.File {
	t.Helper()
	c, ok := synth.Tiny(family)
	if !ok {
		t.Fatalf("no family %s", family)
	}
	c.Dims = model.Dims{Hidden: 32, Layers: 2, Heads: 2, KVHeads: 2, HeadDim: 16, FFN: 48, Vocab: tinyVocab,
		Context: 256}
	return fileOf(t, c, gguf.F32)
}

func someTexts(seed uint64, n, longest int) (list [][]int32) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for range n {
		text := make([]int32, 1+rng.IntN(longest))
		for i := range text {
			text[i] = int32(rng.IntN(tinyVocab))
		}
		list = append(list, text)
	}
	return list
}

// TestEmbedInBatch checks that texts of many requests of both classes share forwards, and that each
// gets the bits that it gets alone.
func TestEmbedInBatch(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"bert", "qwen3-embedding", "bert-rerank"} {
		t.Run(family, func(t *testing.T) {
			o := optionsFor(t, pooledFile(t, family))
			o.Plan.Chunk = 128
			e := open(t, o)
			if !e.Pooled() {
				t.Fatal("the engine does not know that its model is pooled")
			}
			const requests = 6
			want := make([][][]float32, requests)
			for i := range requests {
				for _, text := range someTexts(uint64(i), 12, 70) {
					alone, err := e.Embed(t.Context(), api.Embedding{Prompts: [][]int32{text},
						Rank: e.runner.Model.Scores})
					if err != nil {
						t.Fatal(err)
					}
					want[i] = append(want[i], alone.Rows[0])
				}
			}
			before := e.Stats().Prefills
			var group sync.WaitGroup
			for i := range requests {
				group.Go(func() {
					texts := someTexts(uint64(i), 12, 70)
					got, err := e.Embed(t.Context(), api.Embedding{Prompts: texts, Class: api.Class(i % 2),
						Rank: e.runner.Model.Scores})
					if err != nil {
						t.Error(err)
						return
					}
					same(t, fmt.Sprintf("request %d", i), want[i], got.Rows)
				})
			}
			group.Wait()
			if n := e.Stats().Prefills - before; n >= requests*12 {
				t.Errorf("%d forwards for %d texts: none had several", n, requests*12)
			}
			checkIdleSoon(t, e)
		})
	}
}

// TestEmbedRefuses checks that texts that cannot be read are refused with their number, and so are
// requests that the model does not support.
func TestEmbedRefuses(t *testing.T) {
	o := optionsFor(t, pooledFile(t, "bert"))
	e := open(t, o)
	for _, c := range []struct {
		texts [][]int32
		want  string
	}{
		{[][]int32{{1}, {}}, "text 1: the text is empty: give at least one token"},
		{[][]int32{{1}, {2}, {tinyVocab}}, "text 2: token 0 of the prompt has id 384, outside the vocabulary of 384"},
		{[][]int32{make([]int32, 257)}, "the text has 257 tokens and the context holds 256; shorten it, or have it " +
			"truncated"},
		{make([][]int32, maxTexts+1), "1048577 texts are more than the 1048576 of one request"},
	} {
		if _, err := e.Embed(t.Context(), api.Embedding{Prompts: c.texts}); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := e.Embed(t.Context(), api.Embedding{Prompts: [][]int32{make([]int32, 256)}}); err != nil {
		t.Errorf("a text as long as the context: %v", err)
	}
	var refused *api.InvalidError
	if _, err := e.Generate(t.Context(), api.Request{Prompt: []int32{1}}, nil); !errors.As(err, &refused) {
		t.Errorf("a pooled model generates: %v", err)
	}
	if _, err := e.Embed(t.Context(), api.Embedding{Prompts: [][]int32{{1}}, Rank: true}); !errors.As(err, &refused) {
		t.Errorf("an embedding model scores: %v", err)
	}
	text := open(t, tinyOptions(t))
	if _, err := text.Embed(t.Context(), api.Embedding{Prompts: [][]int32{{1}}}); !errors.As(err, &refused) {
		t.Errorf("a model without pooling embeds: %v", err)
	}
}

// TestEmbedEnds checks that a canceled request frees its resources, and that a request beyond the
// limit is refused with a time to retry.
func TestEmbedEnds(t *testing.T) {
	o := optionsFor(t, pooledFile(t, "bert"))
	o.Parallel, o.Queue = 1, 1
	e := open(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i := range 2 {
		group.Go(func() {
			_, err := e.Embed(ctx, api.Embedding{Prompts: someTexts(uint64(i), 20000, 200)})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		})
	}
	for readers := 0; readers < 2; runtime.Gosched() {
		e.mu.Lock()
		readers = e.embedCalls
		e.mu.Unlock()
	}
	var full *api.QueueFullError
	if _, err := e.Embed(t.Context(), api.Embedding{Prompts: [][]int32{{1}}}); !errors.As(err, &full) {
		t.Errorf("a third request is answered with %v", err)
	}
	cancel()
	group.Wait()
	checkIdleSoon(t, e)
	if _, err := e.Embed(t.Context(), api.Embedding{Prompts: [][]int32{{1}}}); err != nil {
		t.Error(err)
	}
}
