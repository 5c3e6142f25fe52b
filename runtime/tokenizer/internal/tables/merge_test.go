package tables

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// mergeByHand is the reference: it repeatedly joins the pair of lowest rank, the left-most among
// equals.
func mergeByHand(m *MergeTable, word []int32) []int32 {
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

// TestMerge compares both merge algorithms with the reference, on random rules over few letters.
func TestMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w Work
	for range 300 {
		m := NewMergeTable(8)
		letters, next := int32(1+rng.IntN(4)), int32(10)
		for range rng.IntN(60) {
			symbol := func() int32 {
				if next == 10 || rng.IntN(2) == 0 {
					return rng.Int32N(letters)
				}
				return 10 + rng.Int32N(next-10)
			}
			m.Add(symbol(), symbol(), rng.Uint32N(20), next)
			next++
		}
		for range 20 {
			word := make([]int32, 1+rng.IntN(200))
			for i := range word {
				word[i] = rng.Int32N(letters)
			}
			want := mergeByHand(m, word)
			if got := m.Merge(&w, slices.Clone(word)); !slices.Equal(got, want) {
				t.Fatalf("merge: %v gives %v, want %v", word, got, want)
			}
			if got := m.mergeLong(&w, slices.Clone(word)); !slices.Equal(got, want) {
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
	m := NewMergeTable(0)
	for i := int32(0); i < 10_000; i++ {
		m.Add(i, i+1, uint32(i), -i)
		m.Add(i, i+1, 7, 7) // the first rule of a pair stays
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

// BenchmarkMergeWord measures both merge algorithms by word length; shortWord is the length at
// which they take the same time.
func BenchmarkMergeWord(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	m, next := NewMergeTable(8), int32(26)
	for range 4000 {
		m.Add(rng.Int32N(next), rng.Int32N(26), uint32(next), next)
		next++
	}
	for _, n := range []int{4, 8, 16, 24, 32, 48} {
		words := make([][]int32, 1000)
		for i := range words {
			for range n {
				words[i] = append(words[i], rng.Int32N(26))
			}
		}
		run := func(name string, merge func(w *Work, word []int32) []int32) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var w Work
				word := make([]int32, n)
				for i := 0; b.Loop(); i++ {
					copy(word, words[i%len(words)])
					merge(&w, word)
				}
			})
		}
		run("short", func(_ *Work, word []int32) []int32 { return m.mergeShort(word) })
		run("long", m.mergeLong)
	}
}
