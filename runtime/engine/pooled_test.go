package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
	"sandwich/runtime/refdata"
	"sandwich/runtime/tokenizer"
)

// pooled2 lists further models that return vectors or scores.
var pooled2 = []string{"bert-cls", "bert-mean", "bert-rerank", "nomic-bert", "gemma-embedding",
	"gemma-embedding-dense", "qwen3-embedding", "qwen3-rerank"}

// pooledReference is the sidecar of one.
type pooledReference struct {
	Model     string
	Dim       int
	Pooling   string
	Sequences []struct {
		Length int
		Tokens []int32
		Pooled struct{ File string }
	}
	Tokenize []struct {
		Text    string
		Plain   []int32 `json:"ids_plain"`
		Special []int32 `json:"ids_with_special_parsing"`
		Added   []int32 `json:"ids_with_special_parsing_and_added"`
	}
}

func openPooled(t *testing.T, name string) (ref pooledReference, file *gguf.File) {
	t.Helper()
	readSidecar(t, "parity2", name, &ref)
	return ref, openModel(t, "parity2", ref.Model)
}

// TestPooled2 compares vectors and scores with those of the second set, inside its tolerances.
func TestPooled2(t *testing.T) {
	skipUnderRace(t)
	for _, name := range pooled2 {
		t.Run(name, func(t *testing.T) {
			ref, file := openPooled(t, name)
			largest, rms := 5e-5, 1e-5
			if ref.Pooling == "rank" {
				largest, rms = 1e-5, 1e-5
			}
			for _, o := range []heuristic.Options{
				{Compute: "f32", KV: "f32"}, {Compute: "f32", KV: "f32", ISA: "avx2"}} {
				r := openTestRunner(t, file, o, 64)
				defer r.Close()
				for _, seq := range ref.Sequences {
					want := readFloats(t, refdata.Path(t, "parity2/"+seq.Pooled.File))
					got := poolAlone(t, r, seq.Tokens, 64)
					if len(got) != ref.Dim || len(want) != ref.Dim {
						t.Fatalf("%d numbers, the reference has %d", len(got), len(want))
					}
					worst, square := 0.0, 0.0
					for i := range want {
						d := math.Abs(float64(got[i] - want[i]))
						worst, square = max(worst, d), square+d*d
					}
					if square = math.Sqrt(square / float64(ref.Dim)); !(worst <= largest && square <= rms) {
						t.Errorf("%s, length %d: off by %.2g (allowed %g), rms %.2g (%g)", o.ISA, seq.Length, worst,
							largest,
							square, rms)
					}
				}
			}
		})
	}
}

// poolAlone is what a model answers to one text.
func poolAlone(t *testing.T, r *forward.Runner, tokens []int32, chunk int) (out []float32) {
	t.Helper()
	r.Lead(func(l *pool.Leader) {
		row, err := NewSequence(r, l).Pool(tokens, chunk)
		if err != nil {
			t.Error(err)
		}
		out = slices.Clone(row)
	})
	return out
}

// TestPooledTokenize2 compares the tokenizers of these models with the ids of the sidecars.
func TestPooledTokenize2(t *testing.T) {
	for _, name := range pooled2 {
		t.Run(name, func(t *testing.T) {
			ref, file := openPooled(t, name)
			tok, err := tokenizer.New(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range ref.Tokenize {
				for i, want := range [][]int32{c.Plain, c.Special, c.Added} {
					o := tokenizer.EncodeOptions{ParseSpecial: i > 0, AddSpecial: i > 1}
					if got := tok.Encode(nil, c.Text, o); !slices.Equal(got, want) {
						t.Errorf("%q %+v: %v, want %v", c.Text, o, got, want)
					}
				}
			}
		})
	}
}

// TestPooledBitEqual checks that the result of a text does not depend on threads, vector widths,
// chunks and the other texts of the batch.
func TestPooledBitEqual(t *testing.T) {
	skipUnderRace(t)
	for _, name := range []string{"bert-mean", "gemma-embedding-dense", "qwen3-embedding", "qwen3-rerank"} {
		t.Run(name, func(t *testing.T) {
			ref, file := openPooled(t, name)
			texts := make([][]int32, len(ref.Sequences))
			for i, seq := range ref.Sequences {
				texts[i] = seq.Tokens
			}
			for _, o := range []heuristic.Options{{Compute: "f32", KV: "f32", Threads: 1}, {Threads: 1}} {
				var want [][]float32
				for _, arm := range []struct {
					isa     string
					threads int
					chunk   int
				}{{"", 1, 512}, {"", 2, 512}, {"", 1, 7}, {"avx2", 1, 64}, {"", 2, 1}} {
					o.ISA, o.Threads = arm.isa, arm.threads
					r := openTestRunner(t, file, o, 512)
					var got [][]float32
					for _, text := range texts {
						got = append(got, poolAlone(t, r, text, arm.chunk))
					}
					r.Close()
					if want == nil {
						want = got
						continue
					}
					same(t, fmt.Sprintf("%+v", arm), want, got)
				}
			}
		})
	}
}

// pooledInBatch computes the text between two other texts, in one forward.
func pooledInBatch(t *testing.T, r *forward.Runner) (out [][]float32) {
	t.Helper()
	r.Lead(func(l *pool.Leader) {
		own := NewSequence(r, l)
		prompt, read := exactPrompt(1)[:exactTokens], 0
		if !r.Model.WholeText() {
			read = exactTokens / 2
			if err := own.Feed(prompt[:read], read, NoLogits, nil); err != nil {
				t.Error(err)
			}
		}
		b := kvcache.Batch{Prefill: true}
		add := func(seq *kvcache.Sequence, tokens []int32, pos int) {
			if !own.cache.Reserve(seq, pos+len(tokens)) {
				t.Error("no blocks for another text")
			}
			own.cache.Cover(seq, pos+len(tokens))
			b.AddSpan(seq, kvcache.Span{Row: len(b.Tokens), Rows: len(tokens), Pos: pos})
			b.Tokens = append(b.Tokens, tokens...)
			b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-1))
		}
		for i, n := range []int{1, 100} {
			add(own.cache.Open(kvcache.Salt{}), exactPrompt(uint64(2 + i))[:n], 0)
		}
		add(own.seq, prompt[read:], read)
		add(own.cache.Open(kvcache.Salt{}), exactPrompt(9)[:70], 0)
		if _, err := r.Forward(l, &b, 0, nil); err != nil {
			t.Error(err)
			return
		}
		out = append(out, slices.Clone(r.Logits(2)))
	})
	return out
}
