package pretok

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sandwich/runtime/refdata"

	"github.com/dlclark/regexp2/v2"
)

// The published expressions, with contractions spelled for ASCII capitals as llama.cpp does.
const (
	gpt2Expr   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Expr = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Expr  = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

var scanOracles = []struct {
	name string
	scan scanner
	expr *regexp2.Regexp
}{
	{"gpt-2", scanGPT2, regexp2.MustCompile(gpt2Expr)},
	{"llama-bpe", scanLlama3, regexp2.MustCompile(llama3Expr)},
	{"qwen2", scanQwen2, regexp2.MustCompile(qwen2Expr)},
}

// words cuts text by a scanner; the lengths are in characters, an invalid byte counting as one.
func words(scan scanner, text string) (lengths []int) {
	scan.cut(text, func(word string) bool {
		lengths = append(lengths, utf8.RuneCountInString(word))
		return true
	})
	return lengths
}

// oracle cuts text by an expression, which must match all of it.
func oracle(tb testing.TB, expr *regexp2.Regexp, text string) (lengths []int) {
	tb.Helper()
	runes := []rune(text)
	found, err := expr.FindAllRunesIndex(runes, -1)
	if err != nil {
		tb.Fatal(err)
	}
	end := 0
	for _, span := range found {
		if span[0] != end {
			tb.Fatalf("the expression leaves out characters %d to %d of %q", end, span[0], text)
		}
		lengths, end = append(lengths, span[1]-span[0]), span[1]
	}
	if end != len(runes) {
		tb.Fatalf("the expression leaves out the end of %q", text)
	}
	return lengths
}

func checkScanners(tb testing.TB, text string) {
	tb.Helper()
	for _, s := range scanOracles {
		if got, want := words(s.scan, text), oracle(tb, s.expr, text); !slices.Equal(got, want) {
			tb.Errorf("%s cuts %q into %v, the expression into %v", s.name, text, got, want)
		}
	}
}

// scanSeeds are texts where the pre-tokenizers differ from each other or look ahead.
var scanSeeds = []string{
	"", " ", "  ", "\n", " \n", "\n ", "a", " a", "  a", "   a b", "\ta", "\t\ta", "\n\na", " \n \n a", "\r\n\r\nx",
	"I'm you're HE'S they'LL we'Ve 'D 'x ' '", "'s", "''s", "' s", "'ſ 'K", "don't", "1", "12", "1234567",
	" 12 345", "1a2b",
	"a.b", ".a", "..a", " ..a", "...\n\n", "... \n\n", " ...\r\n a", "!?\n", "(a) [b]", "-1", "\u00a0a",
	"\u00a0\u00a0a", "a\u00a0\u3000b",
	"\u2028\u2029x", "\u0085a", "é è", "e\u0301a", "\u0301", "你好，世界", "١٢٣٤", "½²Ⅷ", "_a_", "a_b", "🙂🙂 a", "\x00a",
	"\ufeffx", "\ufffd",
	"\xff\xfe", "a\xffb", " \xff", "\xe4\xbd", "x  \xf0\x9f", "\U0010ffff", "ǅ ʰ ª", "\u200bx", "\u180ex",
	" \u2003\u2003a",
}

func TestScanners(t *testing.T) {
	for _, text := range scanSeeds {
		checkScanners(t, text)
		for _, other := range scanSeeds {
			checkScanners(t, text+other)
		}
	}
}

// TestScannersOnReference splits the texts of the reference data, which contain most scripts.
func TestScannersOnReference(t *testing.T) {
	raw, err := os.ReadFile(refdata.Path(t, "tokenizer/strings-qwen2.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ref struct {
		Cases []struct {
			Text string `json:"text"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(raw, &ref); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, c := range ref.Cases {
		checkScanners(t, c.Text)
		all.WriteString(c.Text)
	}
	checkScanners(t, all.String())
}

// TestScannersProgress checks that scanners advance at any single byte, at any position.
func TestScannersProgress(t *testing.T) {
	for b := range 256 {
		for _, frame := range []string{"%", " %", "%a", "a%1", " % ", "'%", "\n%\n"} {
			checkScanners(t, strings.ReplaceAll(frame, "%", string([]byte{byte(b)})))
		}
	}
}

func FuzzScanners(f *testing.F) {
	for _, text := range scanSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= 4096 { // the expressions backtrack
			checkScanners(t, text)
		}
	})
}
