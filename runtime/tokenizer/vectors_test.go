package tokenizer

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/refdata"
)

// vocabs are the reference vocabularies and whether their pieces join to the text without a space
// in front.
var vocabs = []string{"llama-spm", "llama-bpe", "qwen2", "gpt-2"}

var loaded sync.Map // path -> *Tokenizer

// load reads the tokenizer of a GGUF file once.
func load(tb testing.TB, path string) *Tokenizer {
	tb.Helper()
	if t, ok := loaded.Load(path); ok {
		return t.(*Tokenizer)
	}
	file, err := gguf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	t, err := New(file)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	loaded.Store(path, t)
	return t
}

func vocab(tb testing.TB, name string) *Tokenizer {
	tb.Helper()
	return load(tb, refdata.Path(tb, "tokenizer/vocab/ggml-vocab-"+name+".gguf"))
}

func readJSON(tb testing.TB, path string, into any) {
	tb.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// strings of strings-NAME.json and of the tokenize cases next to the parity references.
type encodeCase struct {
	Category string  `json:"category"`
	Text     string  `json:"text"`
	Plain    []int32 `json:"ids_plain"`
	Special  []int32 `json:"ids_with_special_parsing"`
	WithBOS  []int32 `json:"ids_with_special_parsing_and_bos"`
	Detok    string  `json:"detok_with_special_parsing"`
}

func same(a, b []int32) bool { return slices.Equal(a, b) }

func (c encodeCase) check(t *testing.T, tok *Tokenizer) {
	t.Helper()
	if got := tok.Encode(nil, c.Text, EncodeOptions{}); !same(got, c.Plain) {
		t.Errorf("%q plain:\n got %v\nwant %v", c.Text, got, c.Plain)
	}
	if got := tok.Encode(nil, c.Text, EncodeOptions{ParseSpecial: true}); !same(got, c.Special) {
		t.Errorf("%q with special parsing:\n got %v\nwant %v", c.Text, got, c.Special)
	}
}

func TestReferenceStrings(t *testing.T) {
	for _, name := range vocabs {
		t.Run(name, func(t *testing.T) {
			var ref struct {
				Tokens int          `json:"n_tokens"`
				Prefix []int32      `json:"prefix_with_add_special"`
				Cases  []encodeCase `json:"cases"`
				Pieces []struct {
					ID    int32  `json:"id"`
					Attr  uint8  `json:"attr"`
					Bytes string `json:"bytes_hex"`
				} `json:"pieces"`
			}
			readJSON(t, refdata.Path(t, "tokenizer/strings-"+name+".json"), &ref)
			tok := vocab(t, name)
			if tok.Vocab() != ref.Tokens {
				t.Errorf("%d tokens, want %d", tok.Vocab(), ref.Tokens)
			}
			if len(ref.Cases) < 60 || len(ref.Pieces) < 200 {
				t.Fatalf("reference holds %d texts and %d pieces", len(ref.Cases), len(ref.Pieces))
			}
			for _, c := range ref.Cases {
				c.check(t, tok)
				for _, parse := range []bool{false, true} {
					ids := c.Plain
					if parse {
						ids = c.Special
					}
					want := append(slices.Clone(ref.Prefix), ids...)
					if got := tok.Encode(nil, c.Text, EncodeOptions{AddSpecial: true, ParseSpecial: parse}); !same(got,
						want) {
						t.Errorf("%q with special tokens added: got %v, want %v", c.Text, got, want)
					}
				}
				if got := tok.Decode(c.Plain, true); got != c.Text {
					t.Errorf("%q decodes to %q", c.Text, got)
				}
				if name != "llama-spm" { // there a special token is followed by a space that the text did not have
					if got := tok.Decode(c.Special, true); got != c.Text {
						t.Errorf("%q with special tokens decodes to %q", c.Text, got)
					}
				} else if got := tok.Decode(c.Special, true); got != c.Detok {
					t.Errorf("%q with special tokens decodes to %q, want %q", c.Text, got, c.Detok)
				}
			}
			for _, p := range ref.Pieces {
				want, _ := hex.DecodeString(p.Bytes)
				if got := tok.Piece(p.ID); !bytes.Equal(got, want) {
					t.Errorf("piece %d is %x, want %x", p.ID, got, want)
				}
				if got := uint8(tok.attrs[p.ID]); got != p.Attr {
					t.Errorf("attributes of %d are %d, want %d", p.ID, got, p.Attr)
				}
			}
		})
	}
}

func TestReferenceInpOut(t *testing.T) {
	names := []string{"parity2/tokenizer/ggml-vocab-bert-bge.gguf"}
	for _, name := range vocabs {
		names = append(names, "tokenizer/vocab/ggml-vocab-"+name+".gguf")
	}
	for _, name := range names {
		t.Run(path.Base(name), func(t *testing.T) {
			path := refdata.Path(t, name)
			tok := load(t, path)
			in, err := os.ReadFile(path + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			out, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Fatal(err)
			}
			texts := strings.Split(string(in), "\n__ggml_vocab_test__\n")
			lines := strings.Split(string(out), "\n")
			texts = texts[:len(texts)-1]
			if len(texts) != 46 || len(lines) < len(texts) {
				t.Fatalf("%d texts and %d lines of ids", len(texts), len(lines))
			}
			for i, text := range texts {
				var want []int32
				for _, field := range strings.Fields(lines[i]) {
					id, err := strconv.Atoi(field)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				if got := tok.Encode(nil, text, EncodeOptions{}); !same(got, want) {
					t.Errorf("%q:\n got %v\nwant %v", text, got, want)
				}
			}
		})
	}
}

// TestReferenceParity checks the small vocabularies of the parity models.
func TestReferenceParity(t *testing.T) {
	for _, path := range refdata.Glob(t, "parity/ref/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			var ref struct {
				Model    string       `json:"model"`
				Tokenize []encodeCase `json:"tokenize"`
			}
			readJSON(t, path, &ref)
			tok := load(t, refdata.Path(t, "parity/"+ref.Model))
			if len(ref.Tokenize) == 0 {
				t.Fatal("no cases")
			}
			for _, c := range ref.Tokenize {
				c.check(t, tok)
				if c.WithBOS != nil {
					if got := tok.Encode(nil, c.Text, EncodeOptions{AddSpecial: true, ParseSpecial: true}); !same(got,
						c.WithBOS) {
						t.Errorf("%q with BOS: got %v, want %v", c.Text, got, c.WithBOS)
					}
				}
				if got := tok.Decode(c.Special, true); got != c.Detok {
					t.Errorf("%q decodes to %q, want %q", c.Text, got, c.Detok)
				}
			}
		})
	}
}
