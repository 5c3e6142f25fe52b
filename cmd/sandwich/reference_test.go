package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/serve"
	"sandwich/runtime/refdata"
	"sandwich/tuner/measure"
)

// sandwichJSON runs the program and decodes what it prints.
func sandwichJSON(t *testing.T, out any, args ...string) {
	t.Helper()
	cmd := exec.Command("sandwich", args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("sandwich %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("sandwich %s: %v: %s", strings.Join(args, " "), err, text)
	}
}

// TestPerplexityOfTheEmbeddedModel compares the perplexity with the figures that the authors of the
// model publish, within 0.5 %.
func TestPerplexityOfTheEmbeddedModel(t *testing.T) {
	if testing.Short() {
		t.Skip("scores 13,462 tokens; run without -short")
	}
	text := filepath.Join("..", "..", "runtime", "demo", "testdata", "val.txt")
	var s measure.Score
	sandwichJSON(t, &s, "bench", "perplexity", text, "--format", "json")
	if want := 55.6133; s.Tokens != 13462 || math.Abs(s.Perplexity/want-1) > 0.005 {
		t.Errorf("perplexity %.4f over %d tokens, want %.4f over 13462", s.Perplexity, s.Tokens, want)
	}
}

// sidecar holds the reference file of a parity model.
type sidecar struct {
	Model     string
	NVocab    int `json:"n_vocab"`
	Sequences []struct {
		Length int
		Tokens []int32
		Shape  [2]int // of the stored logits: their last row is the last position's
		Refs   map[string]struct {
			File   string
			Greedy []int32
		}
	}
}

// TestGenerateReproducesTheReference checks greedy tokens and logits of the exact path for every
// reference model, from the command line to the file, with one prompt length for each model. The
// engine's TestParity checks all lengths of all models.
func TestGenerateReproducesTheReference(t *testing.T) {
	for i, file := range refdata.Glob(t, "parity/ref/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var ref sidecar
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &ref); err != nil {
				t.Fatal(err)
			}
			seq := ref.Sequences[i%len(ref.Sequences)]
			want := seq.Refs["ref_f32_dequant"]
			logits := filepath.Join(t.TempDir(), "logits.f32")
			var got serve.Generated
			sandwichJSON(t, &got, "generate", "--model", refdata.Path(t, "parity/"+ref.Model), "--tokens",
				joinTokens(seq.Tokens), "-n", "48", "--ignore-eos",
				"--compute", "f32", "--kv", "f32", "--logits", logits, "--format", "json")
			if len(want.Greedy) != 48 || !slices.Equal(got.Tokens, want.Greedy) || !slices.Equal(got.Prompt,
				seq.Tokens) {
				t.Errorf("greedy tokens of %d are %v, want %v", seq.Length, got.Tokens, want.Greedy)
			}
			compareLogits(t, logits, refdata.Path(t, "parity/"+want.File), ref.NVocab, seq.Length, seq.Shape[0])
		})
	}
}

// TestGenerateByContext checks that LongRoPE depends on --ctx and not on the length of the prompt:
// the same tokens have other logits if the sequence may be longer.
func TestGenerateByContext(t *testing.T) {
	for name, limit := range map[string]string{"phi3": "512", "phi3-short": "256"} {
		var ref sidecar
		text, err := os.ReadFile(refdata.Path(t, "parity2/ref/"+name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &ref); err != nil {
			t.Fatal(err)
		}
		seq := ref.Sequences[2]
		want := seq.Refs["ref_f32_dequant"]
		logits := filepath.Join(t.TempDir(), "logits.f32")
		var got serve.Generated
		sandwichJSON(t, &got, "generate", "--model", refdata.Path(t, "parity2/"+ref.Model), "--tokens",
			joinTokens(seq.Tokens), "-n", "48", "--ignore-eos", "--compute", "f32", "--kv", "f32", "--ctx", limit,
			"--logits", logits, "--format", "json")
		if len(want.Greedy) != 48 || !slices.Equal(got.Tokens, want.Greedy) {
			t.Errorf("%s: greedy tokens are %v, want %v", name, got.Tokens, want.Greedy)
		}
		compareLogits(t, logits, refdata.Path(t, "parity2/"+want.File), ref.NVocab, seq.Length, seq.Shape[0])
	}
}

// TestEmbedToAPipe checks that embed --format f32 writes the same bytes to a pipe as to a file.
func TestEmbedToAPipe(t *testing.T) {
	var ref struct {
		Model     string
		Sequences []struct {
			Tokens []int32
			Pooled struct{ File string }
		}
	}
	text, err := os.ReadFile(refdata.Path(t, "parity2/ref/bert-cls.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &ref); err != nil {
		t.Fatal(err)
	}
	for _, seq := range ref.Sequences {
		want, err := os.ReadFile(refdata.Path(t, "parity2/"+seq.Pooled.File))
		if err != nil {
			t.Fatal(err)
		}
		got, err := exec.Command("sandwich", "embed", "--model", refdata.Path(t, "parity2/"+ref.Model), "--tokens",
			joinTokens(seq.Tokens), "--raw", "--compute", "f32", "--kv", "f32", "--format", "f32").Output()
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d bytes, want %d: %v", len(got), len(want), err)
		}
		for i := 0; i < len(want); i += 4 {
			a := math.Float32frombits(binary.LittleEndian.Uint32(got[i:]))
			b := math.Float32frombits(binary.LittleEndian.Uint32(want[i:]))
			if d := math.Abs(float64(a - b)); !(d <= 5e-5) {
				t.Fatalf("number %d is %v, want %v", i/4, a, b)
			}
		}
	}
}

func joinTokens(ids []int32) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(int(id))
	}
	return strings.Join(words, ",")
}

// compareLogits holds the header of a logits file, its size, and its last rows against a reference
// without a header, to the tolerances of exact arithmetic.
func compareLogits(t *testing.T, path, reference string, vocab, positions, stored int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rows, _ := bytes.Cut(data, []byte("\n"))
	var h struct{ Vocab, Positions int }
	if err := json.Unmarshal(head, &h); err != nil || h.Vocab != vocab || h.Positions != positions {
		t.Fatalf("header %s, want vocabulary %d and %d positions: %v", head, vocab, positions, err)
	}
	want, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4*vocab*positions || len(want) != 4*vocab*stored {
		t.Fatalf("%d bytes of logits for %d positions, and %d of reference for %d", len(rows), positions,
			len(want), stored)
	}
	rows = rows[len(rows)-len(want):]
	worst, squares := 0.0, 0.0
	for i := 0; i < len(want); i += 4 {
		a := math.Float32frombits(binary.LittleEndian.Uint32(rows[i:]))
		b := math.Float32frombits(binary.LittleEndian.Uint32(want[i:]))
		d := math.Abs(float64(a - b))
		if math.IsNaN(d) {
			t.Fatalf("logit %d is %v, want %v", i/4, a, b)
		}
		worst, squares = max(worst, d), squares+d*d
	}
	if rms := math.Sqrt(squares / float64(len(want)/4)); worst > 5e-4 || rms > 5e-5 {
		t.Errorf("logits of %d positions differ by %g, rms %g; at most 5e-4 and 5e-5 is exact arithmetic",
			positions, worst, rms)
	}
}
