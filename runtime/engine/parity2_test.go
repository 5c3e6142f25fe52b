package engine

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"sandwich/plans/heuristic"
	"sandwich/runtime/gguf"
	"sandwich/runtime/pool"
	"sandwich/runtime/refdata"
	"sandwich/runtime/tokenizer"
)

// reference2 is the sidecar of a model of the second set, as far as it differs from the first's.
type reference2 struct {
	reference
	Context   int `json:"n_ctx"`
	Sequences []struct {
		Length    int
		Tokens    []int32
		Positions json.RawMessage `json:"stored_positions"` // "all" or a list
		Refs      map[string]struct {
			File          string
			Greedy        []int32
			GreedyMargins []float64 `json:"greedy_margins"`
		}
	}
	Tokenize []struct {
		Text    string
		Plain   []int32 `json:"ids_plain"`
		Special []int32 `json:"ids_with_special_parsing"`
		Added   []int32 `json:"ids_with_special_parsing_and_added"`
		Joined  string  `json:"pieces_joined"`
	}
}

var (
	exact2Tolerance = tolerance{5e-4, 5e-5, 1e-8, 1, 0, 0}
	delta2Tolerance = tolerance{2e-3, 2e-4, 1e-8, 1, 0, 0}
	int82Tolerance  = tolerance{2.5, 0.4, math.Inf(1), 0.85, 1.2, 0}
	moe2Tolerance   = tolerance{math.Inf(1), math.Inf(1), math.Inf(1), 0.85, 1.2, 1.2}
)

// family is a model of the second set.
type family struct {
	name    string
	experts bool
	delta   bool // its norm behind a delta rule blows rounding up: see the set's README
}

// families2 are those models of the second set that a file of runtime/model is there for.
var families2 = []family{
	{name: "gemma2"}, {name: "gemma3"}, {name: "gpt-oss", experts: true}, {name: "phi3"}, {name: "phi3-short"},
	{name: "mistral3"}, {name: "llama-yarn"}, {name: "llama-linear"}, {name: "llama-moe", experts: true},
	{name: "qwen2moe", experts: true}, {name: "smollm3"}, {name: "granite"}, {name: "granitemoe", experts: true},
	{name: "olmo2"}, {name: "olmo3"}, {name: "glm4"}, {name: "lfm2"}, {name: "qwen35", delta: true}, {name: "qwen35moe",
		experts: true, delta: true}, {name: "qwen3next", experts: true, delta: true},
	{name: "qwen3next-legacy", experts: true, delta: true}, {name: "gemma4"}, {name: "gemma4moe",
		experts: true},
	{name: "llama4", experts: true}, {name: "deepseek2-mla", experts: true}, {name: "deepseek2-lite", experts: true},
}

// open2 opens a model of the second set, or skips the test where it is not here.
func (f family) open2(t *testing.T) (ref reference2, file *gguf.File) {
	t.Helper()
	readSidecar(t, "parity2", f.name, &ref)
	return ref, openModel(t, "parity2", ref.Model)
}

// TestParity2 runs the families of the second reference set exactly, in float32 everywhere, and on
// the default path.
func TestParity2(t *testing.T) {
	skipUnderRace(t)
	for _, f := range families2 {
		t.Run(f.name, func(t *testing.T) {
			ref, file := f.open2(t)
			for _, arm := range []struct {
				name string
				o    heuristic.Options
				tol  tolerance
			}{
				{"exact", heuristic.Options{Compute: "f32", KV: "f32"}, exact2Tolerance},
				{"avx2", heuristic.Options{Compute: "f32", KV: "f32", ISA: "avx2"}, exact2Tolerance},
				{"default", heuristic.Options{}, int82Tolerance},
			} {
				if f.delta && arm.tol == exact2Tolerance {
					arm.tol = delta2Tolerance
				}
				if f.experts && arm.tol == int82Tolerance {
					arm.tol = moe2Tolerance
				}
				t.Run(arm.name, func(t *testing.T) {
					r := openTestRunnerContext(t, file, arm.o, 64, 9, ref.Context)
					defer r.Close()
					r.Lead(func(l *pool.Leader) { checkParity2(t, &ref, NewSequence(r, l), arm.tol) })
				})
			}
		})
	}
}

func checkParity2(t *testing.T, ref *reference2, line *Sequence, tol tolerance) {
	var d distance
	for _, seq := range ref.Sequences {
		want := seq.Refs["ref_f32_dequant"]
		if testing.Short() && seq.Length > 33 {
			continue // under an emulator
		}
		rows := readFloats(t, refdata.Path(t, "parity2/"+want.File))
		var positions []int
		if json.Unmarshal(seq.Positions, &positions) != nil {
			for i := range seq.Tokens {
				positions = append(positions, i)
			}
		}
		stored := func(pos int) int { return slices.Index(positions, pos) }
		next, err := d.feed(line, seq.Tokens, stored, rows, ref.NVocab)
		if err != nil {
			t.Error(err)
			return
		}
		checkGreedy(t, line, seq.Length, next, want.Greedy, want.GreedyMargins, tol.margin)
	}
	d.check(t, tol)
}

// TestTokenize2 compares the tokenizers of the second set with the ids of the sidecars.
func TestTokenize2(t *testing.T) {
	for _, f := range families2 {
		t.Run(f.name, func(t *testing.T) {
			ref, file := f.open2(t)
			tok, err := tokenizer.New(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range ref.Tokenize {
				for _, arm := range []struct {
					o    tokenizer.EncodeOptions
					want []int32
				}{
					{tokenizer.EncodeOptions{}, c.Plain}, {tokenizer.EncodeOptions{ParseSpecial: true}, c.Special},
					{tokenizer.EncodeOptions{ParseSpecial: true, AddSpecial: true}, c.Added},
				} {
					if got := tok.Encode(nil, c.Text, arm.o); !slices.Equal(got, arm.want) {
						t.Errorf("%q %+v: %v, want %v", c.Text, arm.o, got, arm.want)
					}
				}
			}
		})
	}
}
