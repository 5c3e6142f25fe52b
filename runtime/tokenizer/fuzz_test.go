package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzzBPE has enough rules to merge text of the seeds, over all three pre-tokenizers.
func fuzzBPE(f *testing.F) (toks []*Tokenizer) {
	rules := []string{"a b", "ab c", "Ġ a", "Ġ Ġ", "ĠĠ ĠĠ", "e r", "h e", "t he", "Ġ the", "Ċ Ċ", "a a", "aa aa", "Ã ©",
		"ä ½", "ä½ ł", "< |", "1 2"}
	for _, pre := range []string{"gpt-2", "llama-bpe", "qwen2"} {
		meta := bytesBPE(rules, "<|end|>", "<s>", "<think>").with(fields{keyPre: pre, keyBOS: uint64(274),
			keyAddBOS: true})
		types := slices.Clone(meta[keyTypes].([]int32))
		types[len(types)-1] = 4
		tok, err := New(meta.with(fields{keyTypes: types}))
		if err != nil {
			f.Fatal(err)
		}
		toks = append(toks, tok)
	}
	return toks
}

func addTexts(f *testing.F) {
	for _, text := range textSeeds {
		f.Add(text)
	}
	for _, text := range []string{"abcabc the there ", "aaaaaaaa    aaaa", "<|end|><s>a<think>b<|en", "<|e<|end|>",
		strings.Repeat("ab", 40), "▁a▁ b", "<0x41>"} {
		f.Add(text)
	}
}

// textSeeds are texts with spaces, line ends, digits, several scripts and invalid bytes.
var textSeeds = []string{
	"", " ", "   a b", "\n\na", " \n \n a", "\r\n\r\nx", "I'm you're HE'S", "1234567", " 12 345", "...\n\n", "(a) [b]",
	"\u00a0\u00a0a", "e\u0301a", "你好，世界", "🙂🙂 a", "\x00a", "\xff\xfe", "a\xffb", "\xe4\xbd", "x  \xf0\x9f",
}

// FuzzRoundTrip checks that byte-level BPE decodes to the encoded text, at once and streamed, with
// and without special tokens.
func FuzzRoundTrip(f *testing.F) {
	toks := fuzzBPE(f)
	addTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			for _, parse := range []bool{false, true} {
				ids := tok.Encode(nil, text, EncodeOptions{ParseSpecial: parse})
				if got := tok.Decode(ids, true); got != text {
					t.Fatalf("parse %v: %q comes back as %q by %v", parse, text, got, ids)
				}
				checkStream(t, tok, ids)
				if !parse && slices.ContainsFunc(ids, tok.IsControl) {
					t.Fatalf("%q gives control tokens unasked: %v", text, ids)
				}
			}
		}
	})
}

// checkStream: what a stream yields is the decoded text with each invalid byte replaced, and is
// UTF-8 at every step.
func checkStream(t *testing.T, tok *Tokenizer, ids []int32) {
	t.Helper()
	s := tok.NewStream()
	s.Special = true
	var text strings.Builder
	for _, id := range ids {
		part := s.Push(id)
		if !utf8.ValidString(part) {
			t.Fatalf("token %d yields %q", id, part)
		}
		text.WriteString(part)
	}
	text.WriteString(s.Flush())
	var whole []byte
	for _, id := range ids {
		whole = append(whole, tok.Piece(id)...)
	}
	if got, want := text.String(), string([]rune(string(whole))); got != want {
		t.Fatalf("streamed %q, whole %q", got, want)
	}
}

// FuzzSPM checks that SPM decodes to the encoded text, in which a space mark is a space, divided or
// not.
func FuzzSPM(f *testing.F) {
	tok, err := New(pieceSPM("▁the", "▁a", "ab", "▁▁", "▁▁▁▁", "the", "er", "▁", "a", "b", "t", "h", "e",
		"r", "é", "你"))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := New(pieceSPM("▁the", "▁a", "ab", "▁▁", "▁▁▁▁", "the", "er", "▁", "a", "b", "t", "h", "e",
		"r", "é", "你"))
	if err != nil {
		f.Fatal(err)
	}
	whole.cutSpaces = false
	addTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(nil, text, EncodeOptions{})
		if want := whole.Encode(nil, text, EncodeOptions{}); !slices.Equal(ids, want) {
			t.Fatalf("%q: cut %v, whole %v", text, ids, want)
		}
		if got, want := tok.Decode(ids, true), strings.ReplaceAll(text, spaceMark, " "); got != want {
			t.Fatalf("%q comes back as %q by %v", text, got, ids)
		}
		checkStream(t, tok, ids)
		checkStream(t, tok, tok.Encode(nil, text, EncodeOptions{ParseSpecial: true, AddSpecial: true}))
	})
}

// FuzzVocabulary checks that no vocabulary panics, and that one that New accepts encodes and
// decodes.
func FuzzVocabulary(f *testing.F) {
	f.Add("gpt2", "gpt-2", "a\nb\nab\n<s>", "a b\nab a", "\x01\x01\x01\x03", "ab<s>a", uint64(3))
	f.Add("llama", "default", "<unk>\n<s>\n</s>\n<0x41>\n▁a\na\nb", "", "\x02\x03\x03\x06\x01\x01\x01",
		"a b A", uint64(1))
	f.Add("gpt2", "qwen2", "Ġ\nĠĠ\n</s>\nĠ", "Ġ Ġ\nĠ Ġ\nx y", "\x01\x04\x01\x05", "  </s> ", uint64(9))
	f.Fuzz(func(t *testing.T, model, pre, tokens, merges, types, text string, bos uint64) {
		meta := fields{keyModel: model, keyPre: pre, keyTokens: strings.Split(tokens, "\n"),
			keyMerges: strings.Split(merges, "\n"), keyBOS: bos}
		kinds, scores := make([]int32, len(types)), make([]float32, len(types))
		for i := range kinds {
			kinds[i], scores[i] = int32(int8(types[i])), float32(types[i]>>3)
		}
		meta[keyTypes], meta[keyScores] = kinds, scores
		tok, err := New(meta)
		if err != nil {
			return
		}
		for _, o := range []EncodeOptions{{}, {AddSpecial: true, ParseSpecial: true}} {
			ids := tok.Encode(nil, text, o)
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Vocab() {
					t.Fatalf("id %d of %d", id, tok.Vocab())
				}
			}
			if w := tok.WidestToken(); w > 0 && len(text) > w*len(ids) {
				t.Fatalf("%q of %d bytes is %d tokens of at most %d bytes", text, len(text), len(ids), w)
			}
			o.Limit = 2
			if some, err := tok.EncodeContext(t.Context(), nil, text, o); err != nil || len(ids) > 5 && len(some) <= 2 {
				t.Fatalf("%q: %v of %v, %v", text, some, ids, err)
			}
			tok.Decode(ids, true)
			checkStream(t, tok, ids)
		}
	})
}
