package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// pliable is a small f32 model whose tensors a test may write to before it is loaded.
func pliable(t *testing.T, arch string) *gguf.File {
	t.Helper()
	c := model.Config{Name: "pliable", Arch: arch, Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 32, Layers: 3, Heads: 2, KVHeads: 2, HeadDim: 16, FFN: 48, Vocab: tinyVocab,
			Context: 1024}}
	if arch == "qwen3moe" {
		c.Experts = model.Experts{Count: 4, Used: 2, FFN: 32}
	}
	var out bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(gguf.F32), 3,
		nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// set changes the elements of a tensor for which at is true.
func set(t *testing.T, f *gguf.File, name string, v float32, at func(n, k int) bool) {
	t.Helper()
	tensor, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	for i := range tensor.Elems() {
		if at(i/tensor.Dims[0], i%tensor.Dims[0]) {
			binary.LittleEndian.PutUint32(tensor.Data[4*i:], math.Float32bits(v))
		}
	}
}

func everywhere(int, int) bool { return true }

// TestOverflowNamesTheLayer checks that a request whose numbers overflow fails with the layer, in
// one chunk and in several, for every number of ranks, also if a norm would turn the numbers into
// zeros, and that a Sequence returns the same error.
func TestOverflowNamesTheLayer(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		tensor string
		value  float32
		want   string
	}{
		{"token_embd.weight", 1e30, "in the embedding:"},
		{"blk.0.attn_v.weight", 3e38, "in layer 0 (attention q, k and v):"},
		{"blk.2.attn_v.weight", 1e6, "in layer 2 (KV cache): its keys or values do not fit a KV cache of f16, " +
			"run it with"},
		{"blk.1.attn_output.weight", 3e38, "in layer 1 (attention output):"},
		{"blk.2.ffn_norm.weight", 3e38, "in layer 2 (ffn norm):"},
		{"blk.1.ffn_up.weight", 3e38, "in layer 1 (ffn gate and up):"},
		{"blk.2.ffn_down.weight", 3e38, "in layer 2 (ffn down):"},
		{"blk.0.ffn_down.weight", 1e24, "in layer 0 (ffn down):"}, // finite, but its square is not
		{"output_norm.weight", 3e38, "in the output norm:"},
		{"output.weight", 3e38, "in the head:"},
	} {
		for _, ranks := range [][]int{nil, {1, 1}} {
			t.Run(fmt.Sprintf("%s/%v", c.tensor, ranks), func(t *testing.T) {
				f := pliable(t, "llama")
				set(t, f, c.tensor, c.value, everywhere)
				checkOverflow(t, f, ranks, c.want)
			})
		}
	}
	for _, sign := range []float32{1, -1} {
		t.Run(fmt.Sprintf("scores/%g", sign), func(t *testing.T) {
			f := pliable(t, "llama")
			set(t, f, "blk.1.attn_q.weight", 1e36, everywhere)
			set(t, f, "blk.1.attn_k.weight", sign*1e3, everywhere)
			checkOverflow(t, f, nil, "in layer 1 (attention):")
		})
	}
	t.Run("experts", func(t *testing.T) {
		f := pliable(t, "qwen3moe")
		set(t, f, "blk.1.ffn_down_exps.weight", 3e38, everywhere)
		checkOverflow(t, f, nil, "in layer 1 (experts down):")
	})
}

func checkOverflow(t *testing.T, f *gguf.File, ranks []int, want string) {
	t.Helper()
	o := optionsFor(t, f)
	if len(ranks) > 0 {
		plan, err := planFor(t, f, heuristic.Options{Service: crews(ranks...)})
		if err != nil {
			t.Fatal(err)
		}
		o.Plan, o.Unpinned = plan, true
	}
	o.Plan.Chunk = 32
	e := open(t, o)
	for _, n := range []int{1, 20, 100} {
		var over *forward.OverflowError
		req := api.Request{Prompt: tinyPrompt(uint64(n), n), MaxTokens: 4}
		_, err := e.Generate(context.Background(), req, func(api.Token) error { return nil })
		if !errors.As(err, &over) || !strings.HasPrefix(err.Error(), "the model's numbers overflow "+want) {
			t.Errorf("a prompt of %d tokens: %v", n, err)
		}
	}
	checkIdleSoon(t, e)
	r, err := forward.Open(t.Context(), o.withBlocks(4))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Lead(func(l *pool.Leader) {
		line := NewSequence(r, l)
		err = line.Feed(tinyPrompt(3, 40), 16, LastLogits, func(int, []float32) error { return nil })
	})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a line: %v", err)
	}
}

// brittle makes a model overflow in the feed-forward of layer 1 for one token alone: element 5 of
// the residual stream is zero for every other one, and a weight that reads it is huge.
func brittle(t *testing.T, f *gguf.File, token int) {
	t.Helper()
	set(t, f, "token_embd.weight", 1000, func(n, k int) bool { return n == token && k == 5 })
	set(t, f, "blk.1.ffn_up.weight", 3e38, func(n, k int) bool { return n == 7 && k == 5 })
}

// TestOverflowLeavesOthersAlone checks that in a batch only the request with the token whose
// numbers overflow fails, and that the others, and later requests in its blocks, get the tokens
// that they get in a sound model.
func TestOverflowLeavesOthersAlone(t *testing.T) {
	skipUnderRace(t)
	f := pliable(t, "llama")
	set(t, f, "token_embd.weight", 0, func(_, k int) bool { return k == 5 })
	for layer := range 3 {
		for _, name := range []string{"attn_output", "ffn_down"} {
			set(t, f, fmt.Sprintf("blk.%d.%s.weight", layer, name), 0, func(n, _ int) bool { return n == 5 })
		}
	}
	reqs := make([]api.Request, 4)
	for i := range reqs {
		reqs[i] = api.Request{Prompt: tinyPrompt(uint64(10+i), 40+i), MaxTokens: 40, IgnoreEOS: true}
	}
	sound, seen := answers(t, f, reqs), map[int32]int{}
	for i, ids := range sound {
		for _, id := range append(reqs[i].Prompt, ids...) {
			seen[id] |= 1 << i
		}
	}
	at := slices.IndexFunc(sound[0], func(id int32) bool {
		return seen[id] == 1 && !slices.Contains(reqs[0].Prompt,
			id)
	})
	if at < 0 || at == len(sound[0])-1 {
		t.Fatal("the first request draws no token that is its own: change the seeds")
	}
	brittle(t, f, int(sound[0][at]))
	if got := answers(t, f, reqs); !slices.Equal(got[0], sound[0][:at+1]) {
		t.Errorf("the request that overflows drew %v, until the token it draws %v", got[0], sound[0][:at+1])
	} else if !slices.EqualFunc(got[1:], sound[1:], slices.Equal) {
		t.Error("others of the batch drew other tokens")
	}

	// In a prompt of several chunks the layer is right, though later positions meet it in the
	// cache.
	e := open(t, optionsFor(t, f))
	long := tinyPrompt(5, 100)
	long[3] = sound[0][at]
	req := api.Request{Prompt: long, MaxTokens: 4}
	_, err := e.Generate(context.Background(), req, func(api.Token) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "in layer 1 (ffn gate and up)") {
		t.Errorf("an early token of a long prompt: %v", err)
	}
	for i := range reqs[1:] {
		if ids, _ := generate(t, e, reqs[1+i]); !slices.Equal(ids, sound[1+i]) {
			t.Error("a request after the failed one drew other tokens")
		}
	}
	checkIdleSoon(t, e)
}

// answers runs requests concurrently and returns the tokens of each, until its end or an overflow
// in layer 1.
func answers(t *testing.T, f *gguf.File, reqs []api.Request) [][]int32 {
	t.Helper()
	e := open(t, optionsFor(t, f))
	out := make([][]int32, len(reqs))
	var all sync.WaitGroup
	for i := range reqs {
		all.Go(func() {
			_, err := e.Generate(context.Background(), reqs[i], func(tok api.Token) error {
				if tok.ID >= 0 {
					out[i] = append(out[i], tok.ID)
				}
				return nil
			})
			if err != nil && !strings.Contains(err.Error(), "in layer 1 (ffn gate and up)") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	checkIdleSoon(t, e)
	return out
}
