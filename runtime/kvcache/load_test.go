package kvcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// outside is content of blocks outside a cache, by store and key.
type outside map[int]map[Key][]int32

// save copies what a cache has of a text, as far as blocks can be pinned.
func (o outside) save(t *testing.T, h *history, ids []int32) {
	for store := range h.c.stores {
		if o[store] == nil {
			o[store] = map[Key][]int32{}
		}
		for b, k := range Keys(Salt{}, ids) {
			has := h.c.Has(store, &k)
			id, ok := h.c.Pin(store, &k)
			if ok && !has {
				t.Fatal("a block was pinned that the cache does not have")
			}
			if !ok {
				continue
			}
			if h.rng.IntN(8) == 0 {
				h.check()
			}
			if got := h.content[store][id]; len(got) < (b+1)*BlockTokens || !slices.Equal(got[:(b+1)*BlockTokens],
				ids[:(b+1)*BlockTokens]) {
				t.Fatalf("store %d: the block of key %d has another text", store, b)
			}
			o[store][k] = slices.Clone(ids[:(b+1)*BlockTokens])
			h.c.Unpin(store, id)
		}
	}
}

// longest returns the greatest position below the end of a text from which it can resume.
func (o outside) longest(h *history, ids []int32) int {
	keys := Keys(Salt{}, ids)
	for n := (len(ids) - 1) / BlockTokens * BlockTokens; n > 0; n -= BlockTokens {
		missing := false
		for store := range h.c.stores {
			for _, p := range Needed(h.c.stores[store].kind, store, n) {
				missing = missing || o[store][keys[p.Block]] == nil
			}
		}
		if !missing {
			return n
		}
	}
	return 0
}

func (h *history) check() {
	h.t.Helper()
	var seqs []*Sequence
	for _, l := range h.open {
		seqs = append(seqs, l.s)
	}
	if err := h.c.Check(seqs); err != nil {
		h.t.Fatal(err)
	}
}

// load opens a text with content from outside and reports whether it loaded any.
func (o outside) load(h *history, ids []int32) bool {
	n, s := o.longest(h, ids), h.c.Open(Salt{})
	at := h.c.Adopt(s, ids)
	if n <= at || !h.c.Reserve(s, len(ids)) {
		h.c.Free(s)
		return false
	}
	keys := Keys(Salt{}, ids)
	pieces := h.c.BeginLoad(s, n)
	h.open = append(h.open, &told{s: s, ids: slices.Clone(ids[:n]), base: n})
	h.check()
	failed := h.rng.IntN(5) == 0
	for _, p := range pieces {
		if failed && h.rng.IntN(2) == 0 {
			break // the rest is not filled
		}
		h.content[p.Store][p.ID] = slices.Clone(o[p.Store][keys[p.Block]])
	}
	if failed {
		h.c.Free(s)
		h.open = h.open[:len(h.open)-1]
		h.check()
		return false
	}
	h.c.EndLoad(s, ids[at:n])
	h.check()
	l := h.open[len(h.open)-1]
	h.holds(l)
	if !h.write(l, ids[n:]) {
		h.t.Fatal("reserved positions cannot be written")
	}
	return true
}

// TestLoadRandomly mixes loads, failed loads and pinned copies with random histories: no sequence
// reads the content of another text, and the invariants hold throughout.
func TestLoadRandomly(t *testing.T) {
	for seed, kinds := range [][]Kind{{Full{}}, {Full{}, Window{64}}, {Window{130}, ends{}}, {chunk{192}, Full{}},
		{Full{}, Recurrent{}}, {Recurrent{}, Window{64}, Full{}}} {
		for _, blocks := range []int{12, 40} {
			t.Run(fmt.Sprint(kinds, blocks), func(t *testing.T) {
				specs := Sizes(kinds, blocks, 3, 100)
				for i := range specs {
					if specs[i].States > 0 {
						specs[i].Blocks += blocks / 4
					}
				}
				h, o := newHistory(t, uint64(seed)+100, 100, specs), outside{}
				loaded := 0
				for range 400 {
					h.step()
					if n := len(h.open); n > 0 && h.rng.IntN(3) == 0 {
						o.save(t, h, h.open[h.rng.IntN(n)].ids)
					}
					if ids := h.text(); len(h.open) < 6 && h.rng.IntN(3) == 0 && o.load(h, ids) {
						loaded++
					}
				}
				if loaded == 0 {
					t.Error("nothing was loaded")
				}
			})
		}
	}
}

// TestLoadedBlocksAreShared checks that later sequences find loaded blocks and states.
func TestLoadedBlocksAreShared(t *testing.T) {
	c := New(64, []Spec{{Kind: Full{}, Blocks: 16}, {Kind: Window{100}, Blocks: 16},
		{Kind: Recurrent{}, Blocks: 6, States: 2}})
	ids := tokens(3*BlockTokens+5, int32(rand.IntN(100)))
	s := c.Open(Salt{})
	if !c.Reserve(s, len(ids)) {
		t.Fatal("no room")
	}
	pieces := c.BeginLoad(s, 3*BlockTokens)
	if want := 3 + 2 + 1; len(pieces) != want {
		t.Fatalf("%d pieces are to be filled, want %d: %v", len(pieces), want, pieces)
	}
	c.EndLoad(s, ids[:3*BlockTokens])
	check(t, c, s)
	other := c.Open(Salt{})
	if n := c.Adopt(other, ids); n != 3*BlockTokens {
		t.Errorf("another sequence shares %d positions", n)
	}
	check(t, c, s, other)
}
