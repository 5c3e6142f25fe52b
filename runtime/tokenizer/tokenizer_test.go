package tokenizer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/refdata"
)

func TestRefusals(t *testing.T) {
	bpe, spm := bytesBPE([]string{"a b"}, "<s>"), pieceSPM("▁", "a")
	long := pieceSPM(strings.Repeat("a", maxSPMPiece+1))
	notANumber := slices.Clone(spm[keyScores].([]float32))
	notANumber[260] = float32(math.NaN())
	badByte := slices.Clone(spm[keyTokens].([]string))
	badByte[10] = "<0xZZ>"
	for name, c := range map[string]struct {
		meta fields
		want string
	}{
		"no vocabulary":        {fields{keyModel: "gpt2"}, keyTokens},
		"empty vocabulary":     {bpe.with(fields{keyTokens: []string{}}), keyTokens},
		"too many tokens":      {bpe.with(fields{keyTokens: make([]string, 1_000_000)}), "more than any model"},
		"no model":             {bpe.with(fields{keyModel: nil}), keyModel},
		"other model":          {bpe.with(fields{keyModel: "rwkv"}), `"rwkv"`},
		"no pre-tokenizer":     {bpe.with(fields{keyPre: nil}), keyPre},
		"other pre-tokenizer":  {bpe.with(fields{keyPre: "klingon"}), `"klingon"`},
		"no merges":            {bpe.with(fields{keyMerges: nil}), keyMerges},
		"half a merge":         {bpe.with(fields{keyMerges: []string{"a b", "ab"}}), "merge rule 1"},
		"empty merge":          {bpe.with(fields{keyMerges: []string{""}}), "merge rule 0"},
		"merge without right":  {bpe.with(fields{keyMerges: []string{"a "}}), "merge rule 0"},
		"too few types":        {bpe.with(fields{keyTypes: []int32{1}}), keyTypes},
		"BOS out of range":     {bpe.with(fields{keyBOS: uint64(1 << 40)}), keyBOS},
		"EOS out of range":     {bpe.with(fields{keyEOS: uint64(258)}), keyEOS},
		"BOS to add is absent": {bpe.with(fields{keyAddBOS: true}), keyAddBOS},
		"EOS to add is absent": {bpe.with(fields{keyAddEOS: true}), keyAddEOS},
		"no scores":            {spm.with(fields{keyScores: nil}), "scores"},
		"too few scores":       {spm.with(fields{keyScores: []float32{1}}), "1 scores"},
		"score not a number":   {spm.with(fields{keyScores: notANumber}), "token 260"},
		"bad byte token":       {spm.with(fields{keyTokens: badByte}), "token 10"},
		"very long piece":      {long, "1025 bytes"},
	} {
		tok, err := New(c.meta)
		if err == nil {
			t.Errorf("%s: accepted, %d tokens", name, tok.Vocab())
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want a sentence with %q", name, err, c.want)
		}
	}
}

// TestInnerSymbols encodes with a merge whose parts are not tokens, and a word that ends as such a
// part.
func TestInnerSymbols(t *testing.T) {
	meta := bytesBPE([]string{"a b", "c d", "ab cd"})
	texts := slices.Clone(meta[keyTokens].([]string))
	texts[256], texts[257] = "[other1]", "[other2]" // instead of "ab" and "cd"
	tok, err := New(meta.with(fields{keyTokens: texts}))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{"abcd": {258}, "ab": {'a', 'b'}, "abab": {'a', 'b', 'a', 'b'},
		"xabcdcd": {'x', 258, 'c', 'd'}} {
		if got := tok.Encode(nil, text, EncodeOptions{}); !slices.Equal(got, want) {
			t.Errorf("%q gives %v, want %v", text, got, want)
		}
	}
}

func TestSpecialTokens(t *testing.T) {
	meta := bytesBPE([]string{"< |"}, "<|>", "<|>y", "<end>", "<u>")
	types := slices.Clone(meta[keyTypes].([]int32))
	types[260] = 4 // <u> is user-defined
	tok, err := New(meta.with(fields{keyTypes: types, keyBOS: uint64(257), keyEOS: uint64(259), keyAddBOS: true,
		keyAddEOS: true}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		o    EncodeOptions
		want []int32
	}{
		{"", EncodeOptions{}, nil},
		{"", EncodeOptions{AddSpecial: true}, []int32{257, 259}},
		{"<|>", EncodeOptions{}, []int32{256, '>'}},
		{"<|>", EncodeOptions{ParseSpecial: true}, []int32{257}},
		{"<|>y<|", EncodeOptions{ParseSpecial: true}, []int32{258, 256}}, // the longest
		{"a<|>b<u>", EncodeOptions{ParseSpecial: true, AddSpecial: true}, []int32{257, 'a', 257, 'b', 260, 259}},
		{"a<u><|>", EncodeOptions{}, []int32{'a', 260, 256, '>'}}, // user-defined ones always
	} {
		if got := tok.Encode(nil, c.text, c.o); !slices.Equal(got, c.want) {
			t.Errorf("%q %+v gives %v, want %v", c.text, c.o, got, c.want)
		}
	}
	if got := tok.Encode([]int32{7}, "a", EncodeOptions{}); !slices.Equal(got, []int32{7, 'a'}) {
		t.Errorf("Encode does not append: %v", got)
	}
	if got := tok.Decode([]int32{257, 'a', 260, 259}, false); got != "a<u>" {
		t.Errorf("without control tokens: %q", got)
	}
	if bos, ok := tok.BOS(); bos != 257 || !ok {
		t.Errorf("BOS %d, %v", bos, ok)
	}
	if eos, ok := tok.EOS(); eos != 259 || !ok || !tok.IsEOG(259) || tok.IsEOG(257) {
		t.Errorf("EOS %d, %v", eos, ok)
	}
	for _, id := range []int32{-1, 261, math.MaxInt32, math.MinInt32} {
		if tok.Piece(id) != nil || tok.IsControl(id) || tok.IsEOG(id) || tok.Decode([]int32{id}, true) != "" {
			t.Errorf("id %d is taken for a token", id)
		}
	}
}

func TestEndsByName(t *testing.T) {
	tok, err := New(bytesBPE(nil, "<|im_start|>", "<|im_end|>", "<|endoftext|>",
		"<|fim_pad|>").with(fields{keyEOT: uint64(256)}))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int32]bool{255: false, 256: true, 257: true, 258: true, 259: true} {
		if tok.IsEOG(id) != want {
			t.Errorf("%q ends a reply: %v", tok.Piece(id), !want)
		}
	}
	if _, ok := tok.EOS(); ok {
		t.Error("EOS out of nothing")
	}
}

// TestMissingBytes encodes what a vocabulary cannot spell.
func TestMissingBytes(t *testing.T) {
	spm, err := New(fields{keyModel: "llama", keyTokens: []string{"<unk>", "<s>", "</s>", "▁", "a"},
		keyTypes: []int32{2, 3, 3, 1, 1}, keyScores: make([]float32, 5)})
	if err != nil {
		t.Fatal(err)
	}
	if got := spm.Encode(nil, "aéa", EncodeOptions{}); !slices.Equal(got, []int32{3, 4, 0, 0, 4}) {
		t.Errorf("SPM: %v", got)
	}
	bpe, err := New(fields{keyModel: "gpt2", keyPre: "gpt-2", keyTokens: []string{"a", "b", "ab"},
		keyMerges: []string{"a b"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := bpe.Encode(nil, "abcab", EncodeOptions{}); !slices.Equal(got, []int32{2, 2}) {
		t.Errorf("BPE: %v", got)
	}
}

// TestCutSpaces checks that cutting SPM text before spaces changes nothing, and is not done where a
// token holds a space inside.
func TestCutSpaces(t *testing.T) {
	tok := vocab(t, "llama-spm")
	if !tok.cutSpaces {
		t.Fatal("llama-spm is not cut")
	}
	defer func() { tok.cutSpaces = true }()
	encode := func(text string, cut bool) []int32 {
		tok.cutSpaces = cut
		return tok.Encode(nil, text, EncodeOptions{})
	}
	var ref struct {
		Cases []encodeCase `json:"cases"`
	}
	readJSON(t, refdata.Path(t, "tokenizer/strings-llama-spm.json"), &ref)
	for _, c := range ref.Cases {
		if got, want := encode(c.Text, true), encode(c.Text, false); !slices.Equal(got, want) {
			t.Errorf("%q: cut %v, whole %v", c.Text, got, want)
		}
	}
	inner, err := New(pieceSPM("a▁b", "▁b", "a", "b", "▁"))
	if err != nil {
		t.Fatal(err)
	}
	if inner.cutSpaces {
		t.Error("a piece with a space inside is cut")
	}
	if got := inner.Encode(nil, "a b", EncodeOptions{}); !slices.Equal(got, []int32{263, 259}) {
		t.Errorf("got %v", got)
	}
}

func TestAddSpacePrefix(t *testing.T) {
	meta := pieceSPM("▁a", "▁", "a")
	for _, add := range []bool{true, false} {
		tok, err := New(meta.with(fields{keyAddSpace: add}))
		if err != nil {
			t.Fatal(err)
		}
		want := []int32{1, 261, 1, 261}
		if add {
			want = []int32{1, 259, 1, 259}
		}
		got := tok.Encode(nil, "a<s>a", EncodeOptions{AddSpecial: true, ParseSpecial: true})
		if !slices.Equal(got, want) {
			t.Errorf("prefix %v: %v, want %v", add, got, want)
		}
		if text := tok.Decode(got, false); text != map[bool]string{true: "a a", false: "aa"}[add] {
			t.Errorf("prefix %v: %q", add, text)
		}
	}
}

func TestStream(t *testing.T) {
	tok, err := New(bytesBPE(nil, "<end>"))
	if err != nil {
		t.Fatal(err)
	}
	push := func(s *Stream, bytes string) (out []string) {
		for i := range len(bytes) {
			out = append(out, s.Push(int32(bytes[i])))
		}
		return out
	}
	for _, c := range []struct {
		bytes string
		want  []string
		flush string
	}{
		{"aé", []string{"a", "", "é"}, ""},
		{"🙂", []string{"", "", "", "🙂"}, ""},
		{"\xf0\x9f", []string{"", ""}, "\ufffd\ufffd"},
		{"\xf0a", []string{"", "\ufffda"}, ""},
		{"\xff", []string{"\ufffd"}, ""},
		{"\xe4\xbd\xf0", []string{"", "", "\ufffd\ufffd"}, "\ufffd"},
		{"\xed\xa0\x80", []string{"", "\ufffd\ufffd", "\ufffd"}, ""}, // half a surrogate pair
	} {
		s := tok.NewStream()
		if got := push(s, c.bytes); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.bytes, got, c.want)
		}
		if got := s.Flush(); got != c.flush {
			t.Errorf("%q: flushed %q, want %q", c.bytes, got, c.flush)
		}
		if got := s.Flush(); got != "" {
			t.Errorf("%q: flushed twice", c.bytes)
		}
	}
	s := tok.NewStream()
	if got := s.Push(256); got != "" {
		t.Errorf("control token yields %q", got)
	}
	s.Special = true
	if got := s.Push(256); got != "<end>" {
		t.Errorf("control token yields %q", got)
	}
}
