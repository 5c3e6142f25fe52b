package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// unigramMeta returns a vocabulary as T5 has: pieces with scores after the three special tokens.
func unigramMeta(pieces []string, scores []float32, set fields) fields {
	tokens := append([]string{"<pad>", "</s>", "<unk>"}, pieces...)
	types := []int32{3, 3, 2}
	for range pieces {
		types = append(types, 1)
	}
	m := fields{keyModel: "t5", keyTokens: tokens, keyTypes: types, keyScores: append([]float32{0, 0, 0}, scores...)}
	for k, v := range set {
		m[k] = v
	}
	return m
}

// TestUnigramIsLikeliest compares with all ways to cut random texts.
func TestUnigramIsLikeliest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		var pieces []string
		var scores []float32
		for range 1 + rng.IntN(12) {
			var p strings.Builder
			for range 1 + rng.IntN(3) {
				p.WriteByte("abc"[rng.IntN(3)])
			}
			if !slices.Contains(pieces, p.String()) {
				pieces = append(pieces, p.String())
				scores = append(scores, -rng.Float32()*9)
			}
		}
		tok, err := New(unigramMeta(pieces, scores, nil))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for range 1 + rng.IntN(9) {
			text += string("abc"[rng.IntN(3)])
		}
		lowest := slices.Min(scores)
		want := math.Inf(-1)
		var cut func(rest string, sum float64)
		cut = func(rest string, sum float64) {
			if rest == "" {
				want = max(want, sum)
				return
			}
			single := false
			for i, p := range pieces {
				if after, ok := strings.CutPrefix(rest, p); ok {
					single = single || len(p) == 1
					cut(after, sum+float64(scores[i]))
				}
			}
			if !single {
				cut(rest[1:], sum+float64(lowest)-unknownPenalty)
			}
		}
		cut(text, 0)
		got, at := 0.0, 0
		for _, id := range tok.Encode(nil, text, EncodeOptions{}) {
			if id != tok.unknown {
				got += float64(scores[id-3])
				at += len(pieces[id-3])
				continue
			}
			// a run of unknown characters is one token: it ends where the next known one fits best
			got, at = math.NaN(), len(text)
			break
		}
		if at != len(text) || !math.IsNaN(got) && math.Abs(got-want) > 1e-9 {
			t.Fatalf("%q by %q: %v covers %d bytes, the likeliest has %v", text, pieces, got, at, want)
		}
	}
}

// TestUnigramSpaces checks that the spelling of spaces follows the flags of the file.
func TestUnigramSpaces(t *testing.T) {
	pieces := []string{"▁", "▁a", "a", "b", "▁b"}
	scores := []float32{-3, -1, -2, -2, -1}
	for _, c := range []struct {
		merge, prefix bool
		text, want    string
	}{
		{true, true, "  a  b ", "▁a ▁b"}, {false, true, "a  b", "▁a ▁ ▁b"}, {false, false, "a b", "a ▁b"},
		{true, false, "ab", "▁a b"}, {false, false, "a zz b", "a ▁ <unk> ▁b"},
	} {
		tok, err := New(unigramMeta(pieces, scores, fields{keyMergeSpaces: c.merge, keyAddSpace: c.prefix}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, id := range tok.Encode(nil, c.text, EncodeOptions{}) {
			got = append(got, strings.ReplaceAll(string(tok.Piece(id)), " ", spaceMark))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v: %q", c, s)
		}
	}
}

// charsBlob is a map of one character each: a double array by hand.
func charsBlob(from byte, to string) []int32 {
	nodes := make([]uint32, 512)
	const base = 256
	nodes[0] = base << 10
	nodes[base^uint32(from)] = uint32(from) | 1<<8 | (uint32(from)^1)<<10 // a leaf whose BASE leads to its value
	nodes[base^uint32(from)^uint32(from)^1] = 0
	blob := binary.LittleEndian.AppendUint32(nil, uint32(4*len(nodes)))
	for _, n := range nodes {
		blob = binary.LittleEndian.AppendUint32(blob, n)
	}
	var out []int32
	for _, b := range append(blob, to+"\x00"...) {
		out = append(out, int32(b))
	}
	return out
}

// TestUnigramCharsMap checks that characters are replaced by the map, and that a damaged map and
// one with a very long form are refused.
func TestUnigramCharsMap(t *testing.T) {
	blob := charsBlob('A', "a")
	tok, err := New(unigramMeta([]string{"a", "b"}, []float32{-1, -2}, fields{keyCharsMap: blob}))
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode(nil, "AbaA", EncodeOptions{}); !slices.Equal(got, []int32{3, 4, 3, 3}) {
		t.Errorf("%v", got)
	}
	for _, bad := range [][]int32{blob[:3], {255, 255, 255, 255}, {5, 0, 0, 0, 1, 2, 3, 4, 5},
		charsBlob('A', strings.Repeat("a", 200))} {
		if _, err := New(unigramMeta([]string{"a"}, []float32{-1}, fields{keyCharsMap: bad})); err == nil {
			t.Errorf("a map of %d bytes is taken: %v", len(bad), bad[:3])
		}
	}
}

// FuzzUnigram checks that no map, vocabulary or text makes the tokenizer fail, and that tokens are
// in the vocabulary.
func FuzzUnigram(f *testing.F) {
	f.Add("hello  world", []byte{4, 0, 0, 0, 1, 2, 3, 4, 'a', 0}, true, true)
	f.Add("é\xff \x00", []byte{}, false, true)
	f.Fuzz(func(t *testing.T, text string, chars []byte, merge, prefix bool) {
		var blob []int32
		for _, b := range chars {
			blob = append(blob, int32(b))
		}
		tok, err := New(unigramMeta([]string{"▁h", "e", "l", "lo", "▁", "w"}, []float32{-1, -2, -3, -2, -4, -1},
			fields{keyMergeSpaces: merge, keyAddSpace: prefix, keyCharsMap: blob}))
		if err != nil {
			return
		}
		for _, id := range tok.Encode(nil, text, EncodeOptions{AddSpecial: true}) {
			if !tok.known(id) {
				t.Fatalf("token %d of %q", id, text)
			}
		}
	})
}

// FuzzWordPiece checks that every text is encoded between two special tokens, to tokens of the
// vocabulary.
func FuzzWordPiece(f *testing.F) {
	tok := wordPieces(f)
	for _, text := range []string{"", "unaffable", "Café 中文\x00\xff", "가나다", strings.Repeat("un", 300)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(nil, text, EncodeOptions{AddSpecial: true})
		if n := len(ids); n < 2 || ids[0] != 2 || ids[n-1] != 3 {
			t.Fatalf("%q comes to %v", text, ids)
		}
		for _, id := range ids {
			if !tok.known(id) {
				t.Fatalf("token %d of %q", id, text)
			}
		}
	})
}

func wordPieces(tb testing.TB) *Tokenizer {
	tb.Helper()
	return wordPiecesWith(tb, fields{keyUnknown: uint64(1)})
}

// wordPiecesWith returns a tokenizer of word pieces with further metadata.
func wordPiecesWith(tb testing.TB, more fields) *Tokenizer {
	tb.Helper()
	tokens := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "aff", "able", "▁a", "▁cafe", "▁中", "▁,", "▁ᄀ"}
	types := []int32{3, 3, 3, 3}
	for range len(tokens) - 4 {
		types = append(types, 1)
	}
	tok, err := New(fields{keyModel: "bert", keyTokens: tokens, keyTypes: types, keyFirst: uint64(2),
		keySeparator: uint64(3)}.with(more))
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// TestWordPiece checks that words are divided from the left, unknown words become one token,
// accents and case are removed, and punctuation and Chinese characters are separate words.
func TestWordPiece(t *testing.T) {
	tok := wordPieces(t)
	for text, want := range map[string][]int32{
		"unaffable": {4, 5, 6}, "unaffably": {1}, "UN CAFÉ": {4, 8}, "un中,a": {4, 9, 10, 7}, "cafe\u200b": {8},
		"가": {11}, "": nil, " \t\n": nil, "a\x00": {7},
	} {
		if got := tok.Encode(nil, text, EncodeOptions{}); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	got := tok.Encode(nil, "[SEP] a", EncodeOptions{ParseSpecial: true, AddSpecial: true})
	if fmt.Sprint(got) != "[2 3 7 3]" {
		t.Error(got)
	}
}

// TestWordPieceWithoutUnknown checks that a vocabulary without an unknown token drops unknown
// words.
func TestWordPieceWithoutUnknown(t *testing.T) {
	got := wordPiecesWith(t, nil).Encode(nil, "un unaffably a", EncodeOptions{AddSpecial: true})
	if want := []int32{2, 4, 7, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPairs checks that a long document is cut and the text after it stays, with a template and
// without.
func TestPairs(t *testing.T) {
	meta := bytesBPE(nil, "<q>", "<d>", "<end>").with(fields{keyPairTemplate: "<q>{query}<d>{document}<end>{query}!"})
	template, err := New(meta)
	if err != nil {
		t.Fatal(err)
	}
	plain := wordPieces(t)
	for _, c := range []struct {
		tok             *Tokenizer
		query, document string
		max             int
		want            string
	}{
		{template, "a", "bcd", 9, "[256 97 257 98 99 100 258 97 33]"},
		{template, "a", "bcd", 8, "[256 97 257 98 99 258 97 33]"},
		{template, "a", "bcdefghijkl", 7, "[256 97 257 98 258 97 33]"},
		{plain, "un", "a un a", 7, "[2 4 3 7 4 7 3]"},
		{plain, "un", "a un a", 6, "[2 4 3 7 4 3]"},
		{plain, "un", "a un a", 5, "[2 4 3 7 3]"},
	} {
		ids, err := c.tok.EncodePair(t.Context(), c.query, c.document, 0)
		if err == nil {
			ids, err = c.tok.TruncatePair(t.Context(), ids, c.query, c.max)
		}
		if err != nil || fmt.Sprint(ids) != c.want {
			t.Errorf("%q and %q cut to %d: %v (%v), want %s", c.query, c.document, c.max, ids, err, c.want)
		}
	}
}
