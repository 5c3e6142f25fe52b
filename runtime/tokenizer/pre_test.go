package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/refdata"
)

// another is metadata with another pre-tokenizer.
type another struct {
	Metadata
	pre string
}

func (a another) String(key string) (string, bool) {
	if key == keyPre {
		return a.pre, true
	}
	return a.Metadata.String(key)
}

// TestPreTokenizers compares the ids that every pre-tokenizer of the reference gives to a
// vocabulary whose merges cross words.
func TestPreTokenizers(t *testing.T) {
	var ref struct {
		Texts  []string
		IDs    map[string][][]int32
		Groups [][]string `json:"same_answers"`
	}
	readJSON(t, refdata.Path(t, "parity2/pretok/expected.json"), &ref)
	file, err := gguf.Open(refdata.Path(t, "parity2/pretok/vocab.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, group := range ref.Groups {
		var want [][]int32
		for _, name := range group {
			if ids, ok := ref.IDs[name]; ok {
				want = ids
			}
		}
		for _, name := range group {
			tok, err := New(another{file, name})
			if err != nil {
				t.Error(err)
				continue
			}
			for i, text := range ref.Texts {
				if got := tok.Encode(nil, text, EncodeOptions{}); !slices.Equal(got, want[i]) {
					t.Errorf("%s: %q is %q, want %q", name, text, pieces(tok, got), pieces(tok, want[i]))
				}
			}
		}
	}
}

func pieces(tok *Tokenizer, ids []int32) (out []string) {
	for _, id := range ids {
		out = append(out, string(tok.Piece(id)))
	}
	return out
}

// TestSplittersWhole: words are the text, whatever it is.
func TestSplittersWhole(t *testing.T) {
	for name, pre := range preTokenizers {
		for _, text := range scanSeeds {
			for _, other := range scanSeeds {
				checkWhole(t, name, pre, text+other)
			}
		}
	}
}

func checkWhole(t *testing.T, name string, pre preTokenizer, text string) {
	t.Helper()
	joined := ""
	pre.split.each(text, func(word string) bool {
		if word == "" {
			t.Fatalf("%s cuts %q into empty words", name, text)
		}
		joined += word
		return true
	})
	if joined != text {
		t.Fatalf("%s makes %q of %q", name, joined, text)
	}
}

func FuzzSplitters(f *testing.F) {
	for _, text := range scanSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, pre := range preTokenizers {
			checkWhole(t, name, pre, text)
		}
	})
}

// TestSplittersLinear: long runs of anything are cut in the time of a look at each character. What
// takes the square of it here would not end.
func TestSplittersLinear(t *testing.T) {
	const n = 1 << 18
	for _, pre := range preTokenizers {
		for _, fill := range []string{" ", "a", "1", "\n", "'", "你", "\u0301", " a", "<sentinel:", "IMGIMG"} {
			text, cut := strings.Repeat(fill, n/len(fill))+"x", 0
			pre.split.each(text, func(piece string) bool { cut += len(piece); return true })
			if cut != len(text) {
				t.Errorf("pieces of runs of %q have %d bytes, the text %d", fill, cut, len(text))
			}
		}
	}
}
