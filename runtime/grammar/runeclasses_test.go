package grammar

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
)

// Every character of several bytes is in one block, whose class is that of its kind.
func TestRuneClasses(t *testing.T) {
	next := rune(utf8.RuneSelf)
	for _, x := range automaton.RunesByClass().Blocks {
		if x.Lo != next || x.Hi < x.Lo {
			t.Fatalf("a block begins at %x, want %x", x.Lo, next)
		}
		for _, r := range []rune{x.Lo, (x.Lo + x.Hi) / 2, x.Hi} {
			if automaton.KindOf(r) != x.Class || automaton.ClassOfRune(r) != x.Class {
				t.Errorf("%x: class %d in a block of %d, %d by its kind", r, automaton.ClassOfRune(r), x.Class,
					automaton.KindOf(r))
			}
		}
		if next = x.Hi + 1; next == 0xD800 {
			next = 0xE000
		}
	}
	if next != utf8.MaxRune+1 {
		t.Errorf("the last block ends before %x", next)
	}
}

// foreignVocab has all bytes, characters of several bytes of many kinds, runs of them between
// letters and marks, and parts of them.
func foreignVocab(n int, seed uint64) *Vocab {
	r := rand.New(rand.NewPCG(seed, 11))
	text := [][]byte{nil}
	for b := range 256 {
		text = append(text, []byte{byte(b)})
	}
	letters := []rune("abz " +
		"A09_-\"\\\n\u00a0\u0085éßÀ×日本語のがカ한글жЯπΣǅʰ\u0301१Ⅷ‿—«€\u2003\u2028\u2029\u200b\u3000\ufeff\U0001F600" +
		"\U00010400\U00020000\U0010FFFF\uE000")
	for len(text) < n {
		var w []byte
		for range 1 + r.IntN(5) {
			w = utf8.AppendRune(w, letters[r.IntN(len(letters))])
		}
		if r.IntN(8) == 0 {
			w = w[r.IntN(len(w)):]
		}
		if r.IntN(8) == 0 {
			w = w[:len(w)-r.IntN(len(w))]
		}
		text = append(text, w)
	}
	for _, n := range []int{31, 33, 40, 63, 65} {
		text = append(text, bytes.Repeat([]byte(" "), n), []byte(strings.Repeat("ab", n/2)),
			[]byte(strings.Repeat("é", n)))
	}
	return NewVocab(text, []int32{0})
}

// Masks of strings whose characters of several bytes are taken in part are those that Accept makes.
func TestMasksOfForeignText(t *testing.T) {
	sets := []string{`\\S`, `\\p{L}`, `\\P{L}`, `\\p{Lu}`, `[^\\u0080-\\u009f]`, `[\\u00c0-\\u00ff a-z]`, `[^日-語]`,
		`[一-龥a-z0-9 ]`,
		`[\\p{L}\\p{N}_-]`, `[^\\s/]`, `.`, `[^a\\u2028]`, `[\\w \\u0400-\\u04ff]`, `[a-zA-Z0-9 .é]`}
	served := 0
	for seed := range uint64(14) {
		v := foreignVocab(500, seed)
		r := rand.New(rand.NewPCG(seed, 12))
		set := func() string { return sets[r.IntN(len(sets))] }
		pattern := func() string {
			switch r.IntN(5) {
			case 0:
				return `^` + set() + `+$`
			case 1:
				return `^` + set() + set() + `*( ` + set() + `+)*$`
			case 2:
				return `^(` + set() + `|` + set() + set() + `){2,12}$`
			case 3:
				return set() + `é` + set()
			}
			return `^(?=.*` + set() + `)` + set() + `{3,}$`
		}
		text := `{"anyOf":[{"pattern":"` + pattern() + `","type":"string"},{"type":"string","pattern":"` + pattern() +
			`","maxLength":9},{"type":"string","not":{"pattern":"` + pattern() + `"}}]}`
		if seed%2 == 0 {
			text = `{"type":"string","pattern":"` + pattern() + `"}`
		}
		if !json.Valid([]byte(text)) {
			t.Fatal(text)
		}
		g, err := FromSchema([]byte(text))
		if err != nil {
			t.Logf("%s: %v", text, err) // look-ahead below a not
			continue
		}
		served++
		for i := range uint64(3) {
			consistent(t, g, v, 100*seed+i)
		}
	}
	if served < 10 {
		t.Errorf("%d of 14 are served", served)
	}
}
