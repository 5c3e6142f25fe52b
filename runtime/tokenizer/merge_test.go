package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// mergeByHand is the definition: again and again, join the pair of lowest rank, the left-most of
// equals.
func mergeByHand(m *mergeTable, word []int32) []int32 {
	word = slices.Clone(word)
	for {
		best, rank, joined := -1, noRank, int32(0)
		for i := 0; i+1 < len(word); i++ {
			if r, j := m.look(word[i], word[i+1]); r < rank {
				best, rank, joined = i, r, j
			}
		}
		if best < 0 {
			return word
		}
		word[best] = joined
		word = slices.Delete(word, best+1, best+2)
	}
}

// TestMerge compares the two ways of merging with the definition, on random rules over few letters.
func TestMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var sc scratch
	for range 300 {
		m := newMergeTable(8)
		letters, next := int32(1+rng.IntN(4)), int32(10)
		for range rng.IntN(60) {
			symbol := func() int32 {
				if next == 10 || rng.IntN(2) == 0 {
					return rng.Int32N(letters)
				}
				return 10 + rng.Int32N(next-10)
			}
			m.add(symbol(), symbol(), rng.Uint32N(20), next)
			next++
		}
		for range 20 {
			word := make([]int32, 1+rng.IntN(200))
			for i := range word {
				word[i] = rng.Int32N(letters)
			}
			want := mergeByHand(m, word)
			if got := m.merge(&sc, slices.Clone(word)); !slices.Equal(got, want) {
				t.Fatalf("merge: %v gives %v, want %v", word, got, want)
			}
			if got := m.mergeLong(&sc, slices.Clone(word)); !slices.Equal(got, want) {
				t.Fatalf("with a heap: %v gives %v, want %v", word, got, want)
			}
			if len(word) <= shortWord {
				if got := m.mergeShort(slices.Clone(word)); !slices.Equal(got, want) {
					t.Fatalf("by looking: %v gives %v, want %v", word, got, want)
				}
			}
		}
	}
}

// TestMergeManyRules lets the table grow from its smallest size.
func TestMergeManyRules(t *testing.T) {
	m := newMergeTable(0)
	for i := int32(0); i < 10_000; i++ {
		m.add(i, i+1, uint32(i), -i)
		m.add(i, i+1, 7, 7) // the first rule of a pair stays
	}
	for i := int32(0); i < 10_000; i++ {
		if rank, joined := m.look(i, i+1); rank != uint32(i) || joined != -i {
			t.Fatalf("pair %d: rank %d, joined %d", i, rank, joined)
		}
		if rank, _ := m.look(i+1, i); rank != noRank {
			t.Fatalf("pair %d the other way round has rank %d", i, rank)
		}
	}
}

// TestLongRuns encodes what a quadratic tokenizer would not finish.
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
