package grammar

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAgain checks that a Matcher that is used again gives the masks of a new one.
func TestAgain(t *testing.T) {
	v := testVocab(400, 1)
	g, err := FromSchema([]byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},
		"b":{"enum":["x","yy","zzz"]},"c":{"type":"string","maxLength":9}},"required":["b"]}`))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	used := g.Matcher(v)
	for answer := range 30 {
		fresh := g.Matcher(v)
		if answer > 0 {
			if !used.End() {
				t.Fatal("a Matcher of a small grammar cannot be used again")
			}
			used.Again()
		}
		for left := 40; left > 0 && !fresh.MustEnd(); left-- {
			want, got := fresh.Allowed(left), used.Allowed(left)
			if !slices.Equal(want, got) {
				t.Fatalf("answer %d, %d left: other masks", answer, left)
			}
			var ids []int32
			for id := range int32(v.Size()) {
				if want[id/64]>>(id%64)&1 != 0 {
					ids = append(ids, id)
				}
			}
			id := ids[rng.IntN(len(ids))]
			if v.Ends(id) {
				break
			}
			if err := fresh.Accept(id); err != nil {
				t.Fatal(err)
			}
			if err := used.Accept(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	used.limited = true
	if used.End() {
		t.Error("masks that were cut short may be used again")
	}
}
