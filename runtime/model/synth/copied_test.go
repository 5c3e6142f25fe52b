package synth

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/vocab"
)

// tokenizerOf is a file of the vocabulary that c makes.
func tokenizerOf(t *testing.T, c model.Config) *gguf.File {
	t.Helper()
	var buf bytes.Buffer
	w := gguf.NewWriter(&buf)
	if err := writeVocabulary(w, c); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestVocabularyDeterministic checks that the vocabulary of a model has equal bytes each time.
func TestVocabularyDeterministic(t *testing.T) {
	bytesOf := func(c model.Config) string {
		var buf bytes.Buffer
		w := gguf.NewWriter(&buf)
		if err := errors.Join(writeVocabulary(w, c), w.Close()); err != nil {
			t.Fatal(err)
		}
		return buf.String()
	}
	bert := model.Config{Arch: "bert", Dims: model.Dims{Vocab: 400}}
	borrowed, err := BorrowVocabulary(model.Config{Arch: "llama", Dims: model.Dims{Vocab: 400}},
		tokenizerOf(t, model.Config{Arch: "qwen3", Dims: model.Dims{Vocab: 400}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []model.Config{bert, borrowed} {
		first := bytesOf(c)
		for range 10 {
			if bytesOf(c) != first {
				t.Fatalf("%s: the bytes differ", c.Arch)
			}
		}
	}
}

// TestBorrowedVocabulary checks that a model gets the tokens, merges and flags of another file,
// followed by synthetic tokens up to its own size.
func TestBorrowedVocabulary(t *testing.T) {
	other := tokenizerOf(t, model.Config{Arch: "qwen3", Dims: model.Dims{Vocab: 5000}, Template: "{{ 'theirs' }}"})
	theirs, _ := other.Strings("tokenizer.ggml.tokens")
	merges, _ := other.Strings("tokenizer.ggml.merges")
	eos, _ := other.Uint("tokenizer.ggml.eos_token_id")
	for _, size := range []int{320, 5000, 5001, 9000, 600_000} {
		c, err := BorrowVocabulary(model.Config{Arch: "llama", Dims: model.Dims{Vocab: size}}, other)
		if err != nil {
			t.Fatal(err)
		}
		f := tokenizerOf(t, c)
		tokens, _ := f.Strings("tokenizer.ggml.tokens")
		types, _ := f.Ints("tokenizer.ggml.token_type")
		if want := max(size, 5000); c.Vocab != want || len(tokens) != want || len(types) != want {
			t.Fatalf("%d: a vocabulary of %d, %d tokens, %d types", size, c.Vocab, len(tokens), len(types))
		}
		if !slices.Equal(tokens[:5000], theirs) {
			t.Errorf("%d: the tokens are others", size)
		}
		if got, _ := f.Uint("tokenizer.ggml.eos_token_id"); got != eos || types[got] != vocab.Control {
			t.Errorf("%d: the end is %d of type %d, want %d", size, got, types[got], eos)
		}
		if text, _ := f.String(vocab.TemplateKey); text != "{{ 'theirs' }}" {
			t.Errorf("%d: template %q", size, text)
		}
		got, _ := f.Strings("tokenizer.ggml.merges")
		if !slices.Equal(got[:len(merges)], merges) {
			t.Errorf("%d: the merges are others", size)
		}
		checkMerges(t, tokens, types, got[len(merges):])
	}
}

// checkMerges checks that each merge after the copied ones makes a token of two tokens before it,
// and that no token occurs twice.
func checkMerges(t *testing.T, tokens []string, types []int32, merges []string) {
	t.Helper()
	id := map[string]int{}
	for i, token := range tokens {
		if _, twice := id[token]; twice {
			t.Fatalf("token %q is there twice", token)
		}
		id[token] = i
	}
	for _, m := range merges {
		left, right, _ := bytes.Cut([]byte(m), []byte(" "))
		l, okL := id[string(left)]
		r, okR := id[string(right)]
		whole, ok := id[string(left)+string(right)]
		if !okL || !okR || !ok || l >= whole || r >= whole || types[whole] != vocab.Normal {
			t.Fatalf("merge %q: %d %d -> %d", m, l, r, whole)
		}
	}
}

// TestBorrowedVocabularyRefused checks the errors for tokenizers that cannot be copied.
func TestBorrowedVocabularyRefused(t *testing.T) {
	spm := tokenizerOf(t, model.Config{Arch: "llama", Dims: model.Dims{Vocab: 400}})
	if _, err := BorrowVocabulary(model.Config{Arch: "llama"}, spm); err == nil {
		t.Error("a SentencePiece tokenizer was taken over")
	}
	var buf bytes.Buffer
	w := gguf.NewWriter(&buf)
	w.SetString("tokenizer.ggml.model", "gpt2")
	w.SetStrings("tokenizer.ggml.tokens", make([]string, 300))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := BorrowVocabulary(model.Config{Arch: "llama"}, f); err == nil {
		t.Error("a tokenizer without merges was taken over")
	}
}
