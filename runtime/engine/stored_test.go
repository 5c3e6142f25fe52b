package engine

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/prefix"
)

// allStores makes TestStoredPrefixSurvivesRestart test every kind of store and cache, for `make
// prefixes`.
var allStores = flag.Bool("stores", false, "store prefixes of models with every kind of store")

// withStore returns options with a prefix store in a folder.
func withStore(t testing.TB, o Options, dir string, files disk.Files) Options {
	t.Helper()
	s, err := disk.Open(dir, disk.Options{WriteRate: -1, Bytes: 1 << 30, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	o.Prefixes = PrefixOptions{Store: s, Model: "test"}
	return o
}

// restarted opens an engine that loads whatever is stored, runs fn and closes it.
func restarted(t testing.TB, o Options, fn func(e *Engine)) {
	t.Helper()
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.stored.always = true
	fn(e)
}

// answer is what a request gives: tokens, and the bits of the log probabilities of the most likely
// ones.
type answered struct {
	ids  []int32
	bits []uint32
	api.Result
}

func ask(t testing.TB, e *Engine, req api.Request) (a answered) {
	t.Helper()
	req.MaxTokens, req.IgnoreEOS, req.Logprobs, req.TopLogprobs = 6, true, true, 8
	var err error
	a.Result, err = e.Generate(context.Background(), req, func(tok api.Token) error {
		a.ids = append(a.ids, tok.ID)
		for _, p := range append(tok.Top, tok.TokenLogprob) {
			a.bits = append(a.bits, uint32(p.ID), math.Float32bits(p.Logprob))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return a
}

func (a *answered) equal(b *answered) bool {
	return slices.Equal(a.ids, b.ids) && slices.Equal(a.bits, b.bits)
}

// flush waits until the prefixes are stored.
func flush(t testing.TB, e *Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := e.Prefixes().Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// planned returns options for a file under a plan. Workers are not pinned where the plan has more
// threads than this process has PUs.
func planned(t testing.TB, file *gguf.File, h heuristic.Options) Options {
	t.Helper()
	o := optionsFor(t, file)
	if h.Threads > liveHost(t).UsablePUs().Count() {
		workers := []int{h.Threads}
		if h.TP > 1 {
			workers = slices.Repeat([]int{h.Threads / h.TP}, h.TP)
		}
		h.Service, h.Threads, h.TP, o.Unpinned = crews(workers...), 0, 0, true
	}
	var err error
	if o.Plan, err = planFor(t, file, h); err != nil {
		t.Fatal(err)
	}
	o.Plan.Chunk, o.Context = 100, 600
	return o
}

// TestStoredPrefixSurvivesRestart checks for every kind of store and cache type that an engine
// loads what an earlier one computed, and that its logits have the same bits as without a store.
func TestStoredPrefixSurvivesRestart(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		family, kv string
		tp         int
		rare       bool
	}{{"llama", "f16", 1, false}, {"gemma3", "q8_0", 1, false}, {"qwen35", "f16", 1, false},
		{"llama", "f16", 2, true}, {"llama", "q8_0", 1, true}, {"lfm2", "q8_0", 1, true}, {"gemma3", "f16", 1, true},
		{"llama4", "f16", 1, true}, {"deepseek2", "f16", 1, true}} {
		if c.rare && !*allStores {
			continue
		}
		t.Run(fmt.Sprint(c.family, " ", c.kv, " on ", c.tp), func(t *testing.T) {
			o := planned(t, familyFile(t, c.family, gguf.Q8_0), heuristic.Options{KV: c.kv, Threads: c.tp,
				TP: c.tp})
			shared := exactPrompt(1)[:330]
			first := api.Request{Prompt: slices.Concat(shared, exactPrompt(2)[:70])}
			next := api.Request{Prompt: slices.Concat(shared, exactPrompt(3)[:90])}
			var want answered
			restarted(t, o, func(e *Engine) { want = ask(t, e, next) })
			dir := t.TempDir()
			restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
				ask(t, e, first)
				flush(t, e)
				if n := e.Stats().Prefixes.WrittenObjects; n != 0 {
					t.Errorf("%d blocks of a prompt that was seen once are stored", n)
				}
				ask(t, e, next)
				flush(t, e)
			})
			restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
				got := ask(t, e, next)
				s := e.Stats()
				if !got.equal(&want) {
					t.Errorf("tokens %v after loading %d, want %v", got.ids, s.Scheduler.LoadedTokens, want.ids)
				}
				if minimum := int64(4 * kvcache.BlockTokens); s.Scheduler.LoadedTokens < minimum ||
					int64(got.CachedTokens) != s.Scheduler.LoadedTokens {
					t.Errorf("%d tokens were loaded, %d reported, want at least %d: %+v", s.Scheduler.LoadedTokens,
						got.CachedTokens, minimum, *s.Prefixes)
				}
				checkIdleSoon(t, e)
			})
		})
	}
}

// TestStoredBlocksAreOfOneModel checks that blocks of a model of equal shapes, of other arithmetic
// or of another key are not used, and that those of another vector width are.
func TestStoredBlocksAreOfOneModel(t *testing.T) {
	skipUnderRace(t)
	c, _ := synth.Tiny("llama")
	c.Vocab, c.Context, c.Layers = 1003, 1024, 2
	file, other := synthesized(t, c, gguf.Q8_0), fileOf(t, c, gguf.Q8_0)
	theta := c
	theta.RopeBase = 5e5
	h := heuristic.Options{Compute: "f32", Threads: 1}
	change := func(fn func(h *heuristic.Options)) heuristic.Options {
		h := h
		fn(&h)
		return h
	}
	req, dir := api.Request{Prompt: exactPrompt(1)[:300], Keep: true}, t.TempDir()
	var want answered
	restarted(t, withStore(t, planned(t, file, h), dir, nil), func(e *Engine) { want = ask(t, e, req) })
	salted := req
	salted.Salt = kvcache.Salt{1}
	for what, c := range map[string]struct {
		file *gguf.File
		h    heuristic.Options
		req  api.Request
		hits bool
	}{
		"the same":      {file, h, req, true},
		"AVX2":          {file, change(func(h *heuristic.Options) { h.ISA = "avx2" }), req, true},
		"two threads":   {file, change(func(h *heuristic.Options) { h.Threads = 2 }), req, true},
		"other weights": {other, h, req, false},
		"other theta":   {synthesized(t, theta, gguf.Q8_0), h, req, false},
		"int8":          {file, change(func(h *heuristic.Options) { h.Compute = "int8" }), req, false},
		"another cache": {file, change(func(h *heuristic.Options) { h.KV = "q8_0" }), req, false},
		"another key":   {file, h, salted, false},
	} {
		restarted(t, withStore(t, planned(t, c.file, c.h), dir, nil), func(e *Engine) {
			got := ask(t, e, c.req)
			if n := e.Stats().Scheduler.LoadedTokens; n > 0 != c.hits {
				t.Errorf("%s: %d tokens were loaded", what, n)
			}
			if c.hits && !got.equal(&want) {
				t.Errorf("%s: tokens %v, want %v", what, got.ids, want.ids)
			}
		})
	}
}

// TestPublicPrefix checks that every key reads what is stored under the public salt.
func TestPublicPrefix(t *testing.T) {
	o, dir := tinyOptions(t), t.TempDir()
	prompt := tinyPrompt(1, 200)
	restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
		ask(t, e, api.Request{Prompt: prompt, Salt: prefix.Public, Keep: true})
	})
	var want answered
	restarted(t, o, func(e *Engine) { want = ask(t, e, api.Request{Prompt: prompt}) })
	restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
		for i := range byte(3) {
			got := ask(t, e, api.Request{Prompt: prompt, Salt: kvcache.Salt{i}})
			if n := e.Stats().Scheduler.LoadedTokens; n != int64(i+1)*192 || !got.equal(&want) {
				t.Errorf("key %d: %d tokens were loaded, tokens %v, want %v", i, n, got.ids, want.ids)
			}
		}
	})
}

// TestPredictionsDecide checks that a prompt is computed if loading it is predicted to take longer.
func TestPredictionsDecide(t *testing.T) {
	e := open(t, withStore(t, tinyOptions(t), t.TempDir(), nil))
	j := &job{req: &api.Request{Prompt: tinyPrompt(1, 200)}, hit: prefix.Hit{Positions: 192, Bytes: 1}}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.worthLoading(j); n != 192 {
		t.Errorf("%d positions of a prefix of one byte are loaded", n)
	}
	j.hit.Bytes = math.MaxInt64 / 1000
	if n := e.worthLoading(j); n != 0 {
		t.Errorf("%d positions of a prefix that takes for ever are loaded", n)
	}
}

// imported opens a store that imports a prefix of another one; alter may change the content of a
// block. warnings counts the faults.
func imported(t *testing.T, source *disk.Store, p *disk.Prefix, alter func(b *disk.ManifestBlock, content []byte),
	warnings *int) *disk.Store {
	t.Helper()
	data, err := source.Export(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := disk.ParseManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	store, err := disk.Open(t.TempDir(), disk.Options{WriteRate: -1, Warn: func(string) { *warnings++ }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Objects {
		_, content, err := source.Content(t.Context(), p.Objects[i].Object.Name)
		if err != nil {
			t.Fatal(err)
		}
		alter(&m.Objects[i], content)
		m.Objects[i].SHA256 = fmt.Sprintf("%x", sha256.Sum256(content))
		if _, err := store.Import(t.Context(), m, i, content, prefix.Public); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestImportedPrefixIsCompared checks for every kind of store that the last block of an imported
// prefix is computed and compared before its first use, that it is loaded from then on, also after
// a restart, and that a prefix with other values is removed and never used.
func TestImportedPrefixIsCompared(t *testing.T) {
	skipUnderRace(t)
	negate := func(content []byte) {
		for i := 1; i < len(content); i += 2 {
			content[i] ^= 0x80
		}
	}
	alter := map[string]func(b *disk.ManifestBlock, content []byte){
		"honest": func(*disk.ManifestBlock, []byte) {},
		"all":    func(_ *disk.ManifestBlock, content []byte) { negate(content) },
		"last bit": func(b *disk.ManifestBlock, content []byte) {
			if b.Block == 2 {
				content[len(content)-1] ^= 1
			}
		},
		"first block": func(b *disk.ManifestBlock, content []byte) {
			if b.Block == 0 {
				negate(content)
			}
		},
	}
	for _, family := range []string{"llama", "gemma3", "qwen35"} {
		o, from := planned(t, familyFile(t, family, gguf.Q8_0), heuristic.Options{Threads: 1}), t.TempDir()
		req := api.Request{Prompt: exactPrompt(3)[:230], Salt: prefix.Public, Keep: true}
		var want answered
		restarted(t, withStore(t, o, from, nil), func(e *Engine) { want = ask(t, e, req) })
		source, err := disk.Open(from, disk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := source.Prefixes()
		if err != nil || len(list) != 1 || len(list[0].Tokens) != 192 {
			t.Fatalf("%s: %d prefixes are stored, %v", family, len(list), err)
		}
		for what, alter := range alter {
			warnings, honest := 0, what == "honest"
			if family != "llama" && !honest && what != "first block" && !*allStores {
				continue
			}
			o := o
			o.Prefixes = PrefixOptions{Store: imported(t, source, &list[0], alter, &warnings)}
			for round := range 2 {
				restarted(t, o, func(e *Engine) {
					for i := range byte(2) {
						got := ask(t, e, api.Request{Prompt: req.Prompt, Salt: kvcache.Salt{i + 1}})
						if !got.equal(&want) || honest != (got.CachedTokens == 192) {
							t.Errorf("%s, %s, round %d: %d tokens were loaded, tokens %v, want %v", family, what, round,
								got.CachedTokens, got.ids, want.ids)
						}
					}
					checkIdleSoon(t, e)
					if n := e.Stats().Requests; honest && n != int64(3-round) {
						t.Errorf("%s: %d requests in round %d", family, n, round)
					}
				})
			}
			if warnings != map[bool]int{false: 1}[honest] {
				t.Errorf("%s, %s: %d warnings", family, what, warnings)
			}
		}
	}
}

// storedDir is a folder in which TestStoredElsewhere stores a prefix, or finds the one that a build
// for another architecture stored.
var storedDir = flag.String("stored-dir", "", "folder of TestStoredElsewhere")

// TestStoredElsewhere stores a prefix and its answer in a folder, or checks that the prefix that is
// there is loaded and gives the same answer. `make prefixes` runs it on amd64 and, under an
// emulator, on arm64.
func TestStoredElsewhere(t *testing.T) {
	if *storedDir == "" {
		t.Skip("needs -stored-dir")
	}
	file, err := tinyFile()
	if err != nil {
		t.Fatal(err)
	}
	h := heuristic.Options{Compute: "f32", Attend: "f32", Threads: 1}
	o, req := planned(t, file, h), api.Request{Prompt: tinyPrompt(5, 200), Keep: true}
	o.Context = 256
	answer := filepath.Join(*storedDir, "answer")
	want, err := os.ReadFile(answer)
	restarted(t, withStore(t, o, *storedDir, nil), func(e *Engine) {
		got := ask(t, e, req)
		text := fmt.Sprint(got.ids)
		switch loaded := e.Stats().Scheduler.LoadedTokens; {
		case err != nil:
			if err := os.WriteFile(answer, []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		case loaded != 192 || text != string(want):
			t.Errorf("%d tokens were loaded, answer %s, want %s", loaded, text, want)
		}
	})
}
