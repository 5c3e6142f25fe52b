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

// TestPerplexityOfTheEmbeddedModel holds the figures that the makers of the model publish, within 0.5 %.
func TestPerplexityOfTheEmbeddedModel(t *testing.T) {
	if testing.Short() {
		t.Skip("scores 13,462 tokens")
	}
	text := filepath.Join(referenceFolder(t, "demo"), "val.txt")
	var s score
	sandwichJSON(t, &s, "bench", "perplexity", text, "--format", "json")
	if want := 55.6133; s.Tokens != 13462 || math.Abs(s.Perplexity/want-1) > 0.005 {
		t.Errorf("perplexity %.4f over %d tokens, want %.4f over 13462", s.Perplexity, s.Tokens, want)
	}
}

// TestGenerateReproducesTheReference holds greedy tokens and logits of the exact path, from the command line to the file.
func TestGenerateReproducesTheReference(t *testing.T) {
	root := referenceFolder(t, "parity")
	for _, name := range []string{"llama-f32", "qwen3-q8_0"} {
		t.Run(name, func(t *testing.T) {
			var ref struct {
				Model     string
				NVocab    int `json:"n_vocab"`
				Sequences []struct {
					Length int
					Tokens []int32
					Refs   map[string]struct {
						File   string
						Greedy []int32
					}
				}
			}
			text, err := os.ReadFile(filepath.Join(root, "ref", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &ref); err != nil {
				t.Fatal(err)
			}
			seq := ref.Sequences[2]
			want := seq.Refs["ref_f32_dequant"]
			logits := filepath.Join(t.TempDir(), "logits.f32")
			var got generated
			sandwichJSON(t, &got, "generate", "--model", filepath.Join(root, ref.Model), "--tokens", joinTokens(seq.Tokens), "-n", "48", "--ignore-eos",
				"--compute", "f32", "--kv", "f32", "--logits", logits, "--format", "json")
			if !slices.Equal(got.Tokens, want.Greedy) || !slices.Equal(got.Prompt, seq.Tokens) {
				t.Errorf("greedy tokens %v, want %v", got.Tokens, want.Greedy)
			}
			compareLogits(t, logits, filepath.Join(root, want.File), ref.NVocab, seq.Length)
		})
	}
}

func joinTokens(ids []int32) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(int(id))
	}
	return strings.Join(words, ",")
}

// compareLogits holds the header of a logits file, its size, and its values against a reference without a header.
func compareLogits(t *testing.T, path, reference string, vocab, positions int) {
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
	if len(rows) != len(want) {
		t.Fatalf("%d bytes of logits, want %d", len(rows), len(want))
	}
	worst := 0.0
	for i := 0; i < len(want); i += 4 {
		a := math.Float32frombits(binary.LittleEndian.Uint32(rows[i:]))
		b := math.Float32frombits(binary.LittleEndian.Uint32(want[i:]))
		worst = max(worst, math.Abs(float64(a-b)))
	}
	if worst > 5e-4 {
		t.Errorf("logits differ by %g, at most 5e-4 is exact arithmetic", worst)
	}
}

// referenceFolder is a folder of the reference data: under SANDWICH_TESTDATA, else under ../shared beside the repository.
func referenceFolder(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("SANDWICH_TESTDATA")
	if root == "" {
		root = "../../../shared" // tests run in their own folder
	}
	dir, err := filepath.Abs(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("reference data is not here: %v (set SANDWICH_TESTDATA to the folder that holds %s)", err, name)
	}
	return dir
}
