package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// recurrent are the families whose layers have a state.
var recurrent = []string{"lfm2", "lfm2moe", "qwen35", "qwen35moe", "qwen3next-legacy"}

// recurrentFile is a model of random weights of a family, with the vocabulary of exactPrompt.
func recurrentFile(t testing.TB, family string) *gguf.File {
	t.Helper()
	c, ok := synth.Tiny(family)
	if !ok {
		t.Fatalf("there is no small %s", family)
	}
	c.Vocab, c.Context = 1003, 1024
	return synthesized(t, c, gguf.Q8_0)
}

func synthesized(t testing.TB, c model.Config, typ gguf.Type) *gguf.File {
	t.Helper()
	var out bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(typ), 7, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestStateBitEqual checks that recurrent states give the same bits for all chunks, threads,
// batches and vector widths.
func TestStateBitEqual(t *testing.T) {
	skipUnderRace(t)
	for _, family := range recurrent {
		t.Run(family, func(t *testing.T) {
			file := recurrentFile(t, family)
			o := heuristic.Options{Threads: 1}
			want := logitsAlone(t, file, o, 512)
			for _, chunk := range []int{1, 7, 64} {
				same(t, fmt.Sprintf("chunk %d", chunk), want, logitsAlone(t, file, o, chunk))
			}
			narrow := o
			narrow.Compute = "f32"
			wide := logitsAlone(t, file, narrow, 64)
			narrow.ISA = "avx2"
			same(t, "avx2", wide, logitsAlone(t, file, narrow, 7))
			o.Threads = 2
			same(t, "two threads", want, logitsAlone(t, file, o, 512))
			same(t, "batch of 8", want, logitsInBatch(t, file, o, 8))
		})
	}
}

// TestStateBehindAttention checks a model whose first layer has attention: the layers with a state
// keep no keys and values.
func TestStateBehindAttention(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"lfm2", "qwen35"} {
		c, _ := synth.Tiny(family)
		c.Vocab, c.Context = 1003, 1024
		if family == "lfm2" {
			c.KVHeadsOf = []int{2, 0, 0, 2, 0, 2}
		} else {
			c.Recurrence.Layers = []bool{false, true, true, false, true, true}
		}
		file := synthesized(t, c, gguf.Q8_0)
		want := logitsAlone(t, file, heuristic.Options{Threads: 1}, 7)
		same(t, family+", two threads", want, logitsAlone(t, file, heuristic.Options{Threads: 2}, 64))
	}
}

// everyOp halts a forward after each op.
type everyOp struct{}

func (everyOp) Passed(int) bool { return true }

// TestStateHalts checks that a forward that halts after every op, while another sequence runs on
// the other set of activations, has the bits of one that does not halt.
func TestStateHalts(t *testing.T) {
	skipUnderRace(t)
	for _, family := range recurrent {
		t.Run(family, func(t *testing.T) {
			file := recurrentFile(t, family)
			want := logitsAlone(t, file, heuristic.Options{Threads: 2}, 40)
			r := openTestRunnerBlocks(t, file, heuristic.Options{Threads: 2}, 40, 20)
			defer r.Close()
			if err := r.Reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.Lead(func(l *pool.Leader) {
				line, other := NewSequence(r, l), NewSequence(r, l)
				other.cache, other.seq = line.cache, line.cache.Open(kvcache.Salt{})
				got, prompt := []float32(nil), exactPrompt(1)[:exactTokens]
				for at := 0; at < len(prompt); at += 40 {
					tokens := prompt[at:min(at+40, len(prompt))]
					if !line.cache.Reserve(line.seq, at+len(tokens)) {
						t.Error("no blocks")
						return
					}
					line.cache.Cover(line.seq, at+len(tokens))
					b := kvcache.Batch{Tokens: tokens, Prefill: true, LogitRows: []int32{int32(len(tokens) - 1)}}
					b.AddSpan(line.seq, kvcache.Span{Rows: len(tokens), Pos: at})
					for next := 0; next < r.Ops(); {
						var err error
						r.Use(0)
						if next, err = r.Forward(l, &b, next, everyOp{}); err != nil {
							t.Error(err)
							return
						}
						if r.Use(1); next%7 == 3 && next < r.Ops() {
							if err := other.Feed(exactPrompt(2)[:3], 3, NoLogits, nil); err != nil {
								t.Error(err)
							}
						}
					}
					r.Use(0)
					got = slices.Clone(r.Logits(0))
					line.advance(len(tokens))
				}
				same(t, "halted", want[:1], [][]float32{got})
			})
		})
	}
}

// TestStateServes checks that requests of a model with states get the tokens that they get alone,
// whatever preempts them and wherever they resume, and that a continued conversation computes its
// new tokens and at most one block more if there are blocks for copies.
func TestStateServes(t *testing.T) {
	skipUnderRace(t)
	for _, family := range []string{"lfm2", "qwen3next"} {
		o := optionsFor(t, recurrentFile(t, family))
		o.Context = 600
		t.Run(family+" in a batch", func(t *testing.T) { serveStatesInBatch(t, o) })
		t.Run(family+" in a conversation", func(t *testing.T) { serveStatesAgain(t, o) })
		if family != "lfm2" {
			continue
		}
		for _, o.StateBytes = range []int64{-1, 1} {
			t.Run(fmt.Sprintf("%s, %d bytes", family, o.StateBytes), func(t *testing.T) { serveStatesAgain(t, o) })
		}
	}
}

// alone is what an engine of its own answers to a request.
func alone(t *testing.T, o Options, r api.Request) []int32 {
	t.Helper()
	e := open(t, o)
	defer e.Close()
	ids, _ := generate(t, e, r)
	return ids
}

func serveStatesInBatch(t *testing.T, o Options) {
	few := o
	few.Blocks = 14 // fewer than four requests want
	e := open(t, few)
	reqs, got := make([]api.Request, 5), make([][]int32, 5)
	var all sync.WaitGroup
	for i := range reqs {
		reqs[i] = api.Request{Prompt: exactPrompt(uint64(1 + i/2))[:300+31*i], MaxTokens: 70, IgnoreEOS: true,
			Class: api.Class(i % 2)}
		all.Go(func() { got[i], _ = generate(t, e, reqs[i]) })
	}
	all.Wait()
	checkIdleSoon(t, e)
	for i := range reqs {
		if want := alone(t, o, reqs[i]); !slices.Equal(got[i], want) {
			t.Errorf("request %d got other tokens in a batch", i)
		}
	}
}

func serveStatesAgain(t *testing.T, o Options) {
	e := open(t, o)
	turn := api.Request{Prompt: exactPrompt(9)[:400], MaxTokens: 40, IgnoreEOS: true}
	answer, _ := generate(t, e, turn)
	for _, c := range []struct {
		name   string
		prompt []int32
		min    int
	}{
		{"behind a stripped answer", slices.Concat(turn.Prompt, exactPrompt(3)[:60]), 400 - kvcache.BlockTokens},
		{"behind the answer", slices.Concat(turn.Prompt, answer, exactPrompt(4)[:60]), 439 - kvcache.BlockTokens},
		{"between two copies", slices.Concat(turn.Prompt[:300], exactPrompt(5)[:60]), 0},
		{"at a copy", slices.Concat(turn.Prompt[:384], exactPrompt(6)[:9]), 384},
	} {
		if o.StateBytes != 0 {
			c.min = 0
		}
		next := api.Request{Prompt: c.prompt, MaxTokens: 9, IgnoreEOS: true}
		ids, res := generate(t, e, next)
		if res.CachedTokens < c.min || o.StateBytes != 0 && res.CachedTokens > 0 {
			t.Errorf("%s: %d of %d tokens were reused", c.name, res.CachedTokens, len(c.prompt))
		}
		if want := alone(t, o, next); !slices.Equal(ids, want) {
			t.Errorf("%s: %v, alone %v", c.name, ids, want)
		}
	}
	checkIdleSoon(t, e)
}

// TestStateOverflows checks that a request whose state overflows float32 fails with the layer, and
// that a later request with the same beginning does not find its state.
func TestStateOverflows(t *testing.T) {
	skipUnderRace(t) // plain Go kernels take minutes for its infinities
	for tensor, c := range map[string]struct {
		value float32
		want  string
	}{
		"blk.1.ssm_a":             {1e4, "in layer 1 (convolution and decays):"}, // decays of infinity
		"blk.0.ssm_norm.weight":   {3e38, "in layer 0 (output gate):"},
		"blk.2.ssm_conv1d.weight": {3e38, "in layer 2 (convolution and decays):"},
	} {
		t.Run(tensor, func(t *testing.T) {
			config, _ := synth.Tiny("qwen35")
			config.Vocab = tinyVocab
			f := synthesized(t, config, gguf.F32)
			set(t, f, tensor, c.value, everywhere)
			checkOverflow(t, f, nil, c.want)
		})
	}
}
