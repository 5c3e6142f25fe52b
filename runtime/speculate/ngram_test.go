package speculate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// drafted opens a text of an NGram and returns its draft of n tokens.
func drafted(g *NGram, salt byte, text []int32, n int) []int32 {
	t := g.Open([32]byte{salt}, text)
	defer t.Close()
	draft, _ := t.Draft(nil, n)
	return draft
}

func TestNGramDrafts(t *testing.T) {
	for _, c := range []struct {
		name string
		text []int32
		n    int
		want []int32
	}{
		{"empty", nil, 3, nil},
		{"one token", []int32{1}, 3, nil},
		{"no repetition", []int32{1, 2, 3, 4, 5}, 3, nil},
		{"last two tokens", []int32{1, 2, 3, 4, 1, 2}, 2, []int32{3, 4}},
		{"latest occurrence", []int32{1, 2, 3, 1, 2, 4, 1, 2}, 1, []int32{4}},
		{"longest match", []int32{7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2}, 1, []int32{3}},
		{"period", []int32{1, 2, 1, 2, 1}, 5, []int32{2, 1, 2, 1, 2}},
		{"one token repeated", []int32{5, 5, 5}, 4, []int32{5, 5, 5, 5}},
		{"nothing wanted", []int32{1, 2, 1, 2}, 0, nil},
	} {
		if got := drafted(NewNGram(1<<20), 0, c.text, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%s: the draft is %v, want %v", c.name, got, c.want)
		}
	}
}

// TestNGramGrows compares an index that grows token by token with one that knew all tokens.
func TestNGramGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]int32, 3000)
	for i := range text {
		text[i] = int32(rng.IntN(40))
	}
	g := NewNGram(1 << 20)
	grown := g.Open([32]byte{}, text[:1])
	for i := 1; i < len(text); i++ {
		grown.Append(text[i])
		if i%97 > 0 {
			continue
		}
		got, class := grown.Draft(nil, 8)
		other := NewNGram(1<<20).Open([32]byte{}, text[:i+1])
		want, wantClass := other.Draft(nil, 8)
		if !slices.Equal(got, want) || class != wantClass {
			t.Fatalf("after %d tokens the draft is %v, class %d; want %v, class %d", i+1, got, class, want,
				wantClass)
		}
	}
	grown.Close()
	grown.Close()
}

// TestNGramRecentAnswers checks that answers help later requests of the same salt only.
func TestNGramRecentAnswers(t *testing.T) {
	g := NewNGram(1 << 20)
	first := g.Open([32]byte{1}, []int32{10, 11})
	for _, id := range []int32{1, 2, 3, 4, 5, 6} {
		first.Append(id)
	}
	first.Close()
	if got := drafted(g, 1, []int32{9, 2, 3}, 2); !slices.Equal(got, []int32{4, 5}) {
		t.Errorf("the draft is %v, want the recent answer", got)
	}
	if got := drafted(g, 1, []int32{9, 2, 3}, 9); !slices.Equal(got, []int32{4, 5, 6}) {
		t.Errorf("the draft is %v, want the rest of the recent answer", got)
	}
	if got := drafted(g, 2, []int32{9, 2, 3}, 2); got != nil {
		t.Errorf("another key got %v", got)
	}
	if got := drafted(g, 1, []int32{2, 3, 7, 2, 3}, 1); !slices.Equal(got, []int32{7}) {
		t.Errorf("the draft is %v, want that of the text itself", got)
	}
}

// TestNGramBound checks that memory stays within the bound and is released: old answers go first,
// then texts get no drafts.
func TestNGramBound(t *testing.T) {
	const limit = 100_000
	g := NewNGram(limit)
	rng := rand.New(rand.NewPCG(3, 4))
	for salt := range 200 {
		n := 1 + rng.IntN(3000)
		text := g.Open([32]byte{byte(salt)}, make([]int32, n))
		for range rng.IntN(3000) {
			text.Append(int32(rng.IntN(9)))
			text.Draft(nil, 4)
		}
		if used := g.Bytes(); used > limit {
			t.Fatalf("%d bytes are used, more than %d", used, limit)
		}
		text.Close()
	}
	if len(g.recent) == 0 {
		t.Error("no answer was kept")
	}
	if got := drafted(g, 0, make([]int32, limit), 2); got != nil {
		t.Errorf("a text beyond the bound got %v", got)
	}
	var sum int64
	for _, a := range g.recent {
		sum += a.bytes()
	}
	if sum != g.Bytes() {
		t.Errorf("%d bytes are counted, but the answers take %d", g.Bytes(), sum)
	}
}

// TestNGramGenerations checks that recent answers of one salt are bounded and that the last ones
// are kept.
func TestNGramGenerations(t *testing.T) {
	g := NewNGram(maxBytes)
	for i := range int32(40) {
		text := g.Open([32]byte{}, []int32{-1})
		for k := range int32(4000) {
			text.Append(i*4000 + k)
		}
		text.Close()
	}
	a := g.recent[[32]byte{}]
	if n := len(a.current.tokens) + len(a.previous.tokens); n > 2*recentTokens || n < recentTokens {
		t.Errorf("%d tokens are kept", n)
	}
	found := 0
	for k := int32(39*4000 + 1); k < 39*4000+1001; k++ {
		if got := drafted(g, 0, []int32{k, k + 1, k + 2}, 1); slices.Equal(got, []int32{k + 3}) {
			found++
		}
	}
	if found < 900 {
		t.Errorf("%d of 1,000 places of the last answer were found", found)
	}
}

// BenchmarkNGramLookup measures a lookup at 16,000 tokens of context.
func BenchmarkNGramLookup(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	text := make([]int32, 16000)
	for i := range text {
		text[i] = int32(rng.IntN(2000))
	}
	g := NewNGram(maxBytes)
	t := g.Open([32]byte{}, text)
	draft := make([]int32, 0, 16)
	for b.Loop() {
		draft, _ = t.Draft(draft[:0], 15)
	}
}
