package tokenizer

import (
	"slices"
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
