package tokenizer

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func longTokenizers(t *testing.T) map[string]*Tokenizer {
	t.Helper()
	spm, err := New(pieceSPM("▁", "a", "aa", "aaaa", "▁▁"))
	if err != nil {
		t.Fatal(err)
	}
	bpe, err := New(bytesBPE([]string{"a a", "aa aa", "Ġ Ġ"}, "<a>"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Tokenizer{"SPM": spm, "BPE": bpe}
}

// TestLimit checks that encoding stops soon after the limit, for several kinds of text.
func TestLimit(t *testing.T) {
	const n, limit = 1 << 20, 100
	for name, tok := range longTokenizers(t) {
		for _, text := range []string{strings.Repeat("aa a ", n/5), strings.Repeat("<a>", n/3),
			strings.Repeat("\xff", n), strings.Repeat("é ", n/3)} {
			o := EncodeOptions{ParseSpecial: true, Limit: limit}
			ids, err := tok.EncodeContext(t.Context(), nil, text, o)
			if err != nil || len(ids) <= limit || len(ids) > limit+64 {
				t.Errorf("%s of %.9q: %d tokens, %v", name, text, len(ids), err)
			}
			o.Limit = len(text)
			if all, _ := tok.EncodeContext(t.Context(), nil, text, o); !slices.Equal(all[:limit], ids[:limit]) ||
				tok.Decode(all, true) != text {
				t.Errorf("%s of %.9q: the limit changes what stands before it", name, text)
			}
		}
	}
}

// TestEncodeContext checks that encoding stops soon after the context ends, also inside a long
// word: if it has ended before, and if it ends when the first part of the text is encoded.
func TestEncodeContext(t *testing.T) {
	const n = 4 << 20
	for name, tok := range longTokenizers(t) {
		encode := tok.encode
		for _, text := range []string{strings.Repeat("a", n), strings.Repeat("aa ", n/3),
			"a" + strings.Repeat("<a>", n/3), strings.Repeat("\xff", n)} {
			for _, before := range []bool{true, false} {
				ctx, leave := context.WithCancel(t.Context())
				if before {
					leave()
				}
				tok.encode = func(t *Tokenizer, dst []int32, sc *scratch, text string, afterSpecial bool) []int32 {
					leave()
					return encode(t, dst, sc, text, afterSpecial)
				}
				ids, err := tok.EncodeContext(ctx, nil, text, EncodeOptions{ParseSpecial: true})
				if !errors.Is(err, context.Canceled) || len(ids) > n/64 {
					t.Errorf("%s of %.9q, ended before: %v: %d tokens, %v", name, text, before, len(ids), err)
				}
				leave()
			}
			if ids := tok.Encode(nil, "aaaa aa", EncodeOptions{}); tok.Decode(ids, true) != "aaaa aa" {
				t.Errorf("%s: the text after an abandoned one is %v", name, ids)
			}
		}
	}
}

// TestLongWordMemory checks that encoding a long word takes at most 24 bytes of memory per byte of
// text, in addition to its tokens.
func TestLongWordMemory(t *testing.T) {
	const n = 4 << 20
	text := strings.Repeat("a", n)
	for name, tok := range longTokenizers(t) {
		if name == "SPM" {
			continue // whose word grows as it is read
		}
		dst := make([]int32, 0, n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tok.Encode(dst, text, EncodeOptions{})
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 24*n {
			t.Errorf("%s: %d bytes for a word of %d", name, grown, n)
		}
	}
}

// TestWidestToken checks that the bound holds if spaces are spelled in three bytes, and that there
// is no bound if bytes are dropped.
func TestWidestToken(t *testing.T) {
	tok, err := New(pieceSPM("▁", "▁▁", "▁▁▁▁", "ab"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat(spaceMark, 64)
	if n := len(tok.Encode(nil, text, EncodeOptions{})); tok.WidestToken() != 12 || n*12 < len(text) {
		t.Errorf("widest %d, %d tokens for %d bytes", tok.WidestToken(), n, len(text))
	}
	few, err := New(fields{keyModel: "gpt2", keyPre: "gpt-2", keyTokens: []string{"a", "b", "ab"},
		keyMerges: []string{"a b"}, keyTypes: []int32{1, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(few.Encode(nil, "xyz", EncodeOptions{})); n != 0 || few.WidestToken() != 0 {
		t.Errorf("%d tokens for bytes that the vocabulary lacks, widest %d", n, few.WidestToken())
	}
}

// TestLongRuns encodes runs for which a quadratic algorithm would not finish.
func TestLongRuns(t *testing.T) {
	const n = 1 << 20
	spm, err := New(pieceSPM("▁", "a", "aa", "aaaa", "▁▁"))
	if err != nil {
		t.Fatal(err)
	}
	bpe, err := New(bytesBPE([]string{"a a", "aa aa", "Ġ Ġ"}, "<a>"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tok  *Tokenizer
		text string
		want int
	}{
		"SPM letters":      {spm, strings.Repeat("a", n), n/4 + 1},
		"SPM spaces":       {spm, strings.Repeat(" ", n-1), n / 2},
		"SPM bytes":        {spm, strings.Repeat("\xff", n), n + 1},
		"BPE letters":      {bpe, strings.Repeat("a", n), n / 4},
		"BPE spaces":       {bpe, strings.Repeat(" ", n), n / 2},
		"BPE special":      {bpe, strings.Repeat("<a>", n/3), n / 3},
		"BPE near special": {bpe, strings.Repeat("<a<", n/3), n/3*2 + n/3},
	} {
		ids := c.tok.Encode(nil, c.text, EncodeOptions{ParseSpecial: true})
		if len(ids) != c.want {
			t.Errorf("%s: %d tokens, want %d", name, len(ids), c.want)
		}
		if got := c.tok.Decode(ids, true); got != c.text {
			t.Errorf("%s does not come back", name)
		}
	}
}
