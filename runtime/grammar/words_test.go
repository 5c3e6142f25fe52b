package grammar

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
)

// someWords returns distinct words of few letters, some of which are prefixes of others.
func someWords(r *rand.Rand, n int) []string {
	seen := map[string]bool{}
	var out []string
	for len(out) < n {
		w := make([]byte, 1+r.IntN(9))
		for i := range w {
			w[i] = "abc\"é"[r.IntN(6)]
		}
		if !seen[string(w)] {
			seen[string(w)] = true
			out = append(out, string(w))
		}
	}
	return out
}

// TestWords checks that grammars of few and of many words accept these words only, and that shared
// endings are stored once.
func TestWords(t *testing.T) {
	v := testVocab(400, 3)
	for _, n := range []int{1, 5, automaton.LeastShared - 1, automaton.LeastShared, 300, 3000} {
		r := rand.New(rand.NewPCG(4, uint64(n)))
		w := someWords(r, n)
		b := automaton.NewBuilder(automaton.NewMeter(t.Context(), 0, 0))
		root := b.Rule("")
		b.Define(root, automaton.Words(w))
		p, err := b.Link(root)
		if err != nil {
			t.Fatal(err)
		}
		g := newGrammar(p, NewMemory())
		takes := func(text string) bool {
			m := g.Matcher(v)
			return m.AcceptText([]byte(text)) == nil && m.CanEnd()
		}
		for _, x := range w {
			if !takes(x) {
				t.Fatalf("%d words: %q is not taken", n, x)
			}
		}
		for _, x := range append(someWords(r, 1000), "", "x") {
			if takes(x) != slices.Contains(w, x) {
				t.Fatalf("%d words: %q is taken: %v", n, x, takes(x))
			}
		}
		letters := 0
		for _, x := range w {
			letters += len(x)
		}
		if n == 3000 && len(p.States) > letters/4 {
			t.Errorf("%d letters take %d states", letters, len(p.States))
		}
		consistent(t, g, v, uint64(n))
	}
}

// TestSharedMasks checks that answers under one grammar share masks, also concurrently, and get the
// masks that they would compute.
func TestSharedMasks(t *testing.T) {
	v := testVocab(600, 3)
	const schema = `{"type":"array","items":{"type":"object","properties":{"a":{"enum":["x","xy","z"]},
		"b":{"type":"string","maxLength":12},"c":{"type":"integer","maximum":300}},"additionalProperties":false}}`
	shared, kept := schemaOf(t, schema), int64(0)
	var all sync.WaitGroup
	for seed := range uint64(6) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed/2, 9)) // two of each go the same way
			alone, m := schemaOf(t, schema).Matcher(v), shared.Matcher(v)
			for left := 120; left > 0 && !m.MustEnd(); left-- {
				want := alone.Allowed(left)
				if !slices.Equal(want, m.Allowed(left)) {
					t.Error("other masks")
					return
				}
				id := int32(r.IntN(v.size))
				for want[id/64]>>(id%64)&1 == 0 || v.Ends(id) && r.IntN(8) > 0 {
					id = (id + 1) % int32(v.size)
				}
				if v.Ends(id) {
					return
				}
				if alone.Accept(id) != nil || m.Accept(id) != nil {
					t.Error("a token of its mask is refused")
					return
				}
			}
		})
	}
	all.Wait()
	if kept = shared.Kept(); kept == 0 {
		t.Fatal("no mask is kept")
	}
	m := shared.Matcher(v)
	before := m.Memory()
	if m.Mask(100); m.m.work > 16 || m.Memory() > before+4096 || shared.Kept() != kept {
		t.Errorf("the first mask is made again: work %d", m.m.work)
	}
}
