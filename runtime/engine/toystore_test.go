package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/api"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/pool"
)

// A kind of store that exists only in this file: it keeps the first block of a text and the one
// before the current. Every second layer of its family uses it; the last layer has a window, by
// whole blocks.
type ends struct{}

func (ends) Name() string            { return "ends" }
func (ends) Reads(block, b int) bool { return b == 0 || b == block-1 }
func (ends) Most() int               { return 2 }

func init() {
	near := kvcache.Window{Positions: 70}
	kvcache.Register(ends{})
	kvcache.Register(near)
	families := map[string][]string{"toy-ends": {"", "ends", near.Name()}, "toy-near": {near.Name()}}
	for name, stores := range families {
		arch.Register(arch.Architecture{Name: name, Decoder: func(b *model.Builder) {
			b.Embed(1)
			for i := range b.Layers() {
				b.Norm("attn_norm")
				b.QKV(model.Never)
				b.Rotate(model.Rotation{Rope: b.Rope(model.Rope{})})
				b.Attend(model.Attn{Scale: b.HeadScale(), Store: stores[i%len(stores)]})
				b.AttnOut()
				b.Residual(model.Residual{Scale: 1})
				b.Norm("ffn_norm")
				b.FFN(model.SwiGLU)
				b.Residual(model.Residual{Scale: 1})
			}
			b.Norm("output_norm")
			b.Head(1)
		}})
	}
}

// remembers tells whether a row sees an earlier position in a layer with a store of its own.
func remembers(a model.Attn) func(pos, p int) bool {
	k, err := kvcache.Named(a.Store)
	return func(pos, p int) bool {
		block, earlier := pos/kvcache.BlockTokens, p/kvcache.BlockTokens
		return err != nil || block == earlier || k.Reads(block, earlier)
	}
}

// TestToyStoreBitEqual checks that the positions that a row sees in this store, and the bits of the
// result, do not depend on chunks, batches, threads or ranks, and that they agree with the oracle.
func TestToyStoreBitEqual(t *testing.T) {
	skipUnderRace(t)
	long(t)
	file := toyFile(t, toyConfig("toy-ends"))
	o := heuristic.Options{Compute: "f32", KV: "f32", Threads: 1}
	want := logitsAlone(t, file, o, 512)
	for _, chunk := range []int{7, 64, 200} {
		same(t, fmt.Sprintf("chunk %d", chunk), want, logitsAlone(t, file, o, chunk))
	}
	same(t, "batch of 8", want, logitsInBatch(t, file, o, 8))
	two := o
	two.Threads = 2
	same(t, "two threads", want, logitsAlone(t, file, two, 64))

	m, err := modelfile.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range newOracle(m).forward(exactPrompt(1)[:exactTokens]) {
		if d := math.Abs(float64(want[0][i]) - w); d > 1e-3*max(1, math.Abs(w)) {
			t.Fatalf("logit %d is %v, the oracle's %v", i, want[0][i], w)
		}
	}
}

// TestRollBackBitEqual checks that the same tokens after a rollback give the same bits, and other
// tokens the bits that they give without it.
func TestRollBackBitEqual(t *testing.T) {
	skipUnderRace(t)
	for _, arch := range []string{"llama", "toy-ends"} {
		t.Run(arch, func(t *testing.T) {
			r := openTestRunner(t, toyFile(t, toyConfig(arch)), heuristic.Options{Compute: "f32", Threads: 1}, 64)
			defer r.Close()
			r.Lead(func(l *pool.Leader) {
				line, prompt, other := NewSequence(r, l), exactPrompt(1)[:300], exactPrompt(2)[:300]
				feed := func(tokens []int32) (last []float32) {
					err := line.Feed(tokens, 64, LastLogits, func(_ int, logits []float32) error {
						last = slices.Clone(logits)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
					return last
				}
				plain := feed(prompt)
				for _, n := range []int{1, 5, 60, 64, 150, 299} {
					for _, text := range [][]int32{other, prompt} {
						at := line.cache.RollBack(line.seq, n)
						if n <= kvcache.BlockTokens && at != 300-n || at > 300-n {
							t.Errorf("%d of 300 positions rolled back leave %d", n, at)
						}
						line.pos = at
						got := feed(text[at:])
						if &text[0] == &prompt[0] {
							same(t, fmt.Sprintf("rolled back by %d", n), [][]float32{plain}, [][]float32{got})
							continue
						}
						line.Reset() // the mixed text without rolling back
						feed(prompt[:at])
						name := fmt.Sprintf("other tokens behind %d", at)
						same(t, name, [][]float32{feed(other[at:])}, [][]float32{got})
					}
				}
			})
		})
	}
}

// TestWindowMemoryIsFlat checks that a model with windows only takes the same memory for every
// context beyond them.
func TestWindowMemoryIsFlat(t *testing.T) {
	var sizes []int64
	for _, blocks := range []int{200, 2000} {
		o := optionsFor(t, toyFile(t, toyConfig("toy-near")))
		o.Context = blocks * kvcache.BlockTokens
		e := open(t, o)
		sizes = append(sizes, e.Runner().Memory().KV)
	}
	if sizes[0] != sizes[1] {
		t.Errorf("contexts of 200 and 2000 blocks take %v bytes", sizes)
	}
}

// TestWindowsServe checks that requests of a model with windows get the tokens that they get alone,
// whatever preempts or evicts them, and that a continued conversation computes its new tokens and
// at most one block more.
func TestWindowsServe(t *testing.T) {
	skipUnderRace(t)
	file := toyFile(t, toyConfig("toy-ends"))
	o := optionsFor(t, file)
	o.Context, o.Blocks = 600, 14 // fewer than four requests want
	reqs := make([]api.Request, 6)
	for i := range reqs {
		reqs[i] = api.Request{Prompt: exactPrompt(uint64(1 + i/2))[:300+31*i], MaxTokens: 90, IgnoreEOS: true}
	}
	tokens := func(e *Engine, r api.Request) (ids []int32, cached int) {
		res, err := e.Generate(context.Background(), r, func(tok api.Token) error {
			if tok.ID >= 0 {
				ids = append(ids, tok.ID)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return ids, res.CachedTokens
	}
	e := open(t, o)
	got := make([][]int32, len(reqs))
	var all sync.WaitGroup
	for i := range reqs {
		all.Go(func() { got[i], _ = tokens(e, reqs[i]) })
	}
	all.Wait()
	checkIdleSoon(t, e)
	for i := range reqs {
		fresh := open(t, o)
		if want, _ := tokens(fresh, reqs[i]); !slices.Equal(got[i], want) {
			t.Errorf("request %d got other tokens in a batch", i)
		}
		fresh.Close()
	}

	o.Blocks = 0
	e = open(t, o)
	turn := api.Request{Prompt: exactPrompt(9)[:400], MaxTokens: 40, IgnoreEOS: true}
	answer, _ := tokens(e, turn)
	same := len(turn.Prompt) // a template that strips the answer's reasoning goes on from here
	next := turn
	next.Prompt = append(slices.Clone(turn.Prompt), exactPrompt(3)[:60]...)
	if _, cached := tokens(e, next); cached < same-kvcache.BlockTokens {
		t.Errorf("%d of %d equal tokens were reused behind a stripped answer", cached, same)
	}
	next.Prompt = append(append(slices.Clone(turn.Prompt), answer...), exactPrompt(4)[:60]...)
	same += len(answer) - 1
	if _, cached := tokens(e, next); cached < same-kvcache.BlockTokens {
		t.Errorf("%d of %d equal tokens were reused", cached, same)
	}
	checkIdleSoon(t, e)
}
