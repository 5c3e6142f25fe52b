package kvcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// ends is a kind for tests: a block reads the first block of a text and the one before itself.
type ends struct{}

func (ends) Name() string            { return "ends" }
func (ends) Reads(block, b int) bool { return b == 0 || b == block-1 }
func (ends) Most() int               { return 2 }

// TestKinds checks that a block that one block does not read is read by no later one, that no block
// reads more than Most, and that a window reads exactly the blocks of the positions that its rows
// see.
func TestKinds(t *testing.T) {
	list := []Kind{ends{}, Full{}, Recurrent{}, chunk{64}, chunk{320}}
	for w := range 300 {
		list = append(list, Window{w + 1})
	}
	for _, k := range list {
		for block := range 40 {
			n := 0
			for b := range block {
				reads := k.Reads(block, b)
				if reads {
					n++
				}
				if block > b+1 && reads && !k.Reads(block-1, b) {
					t.Fatalf("%s: block %d reads %d, which the one before does not", k.Name(), block, b)
				}
				if w, ok := k.(Window); ok && reads != (b*BlockTokens+BlockTokens-1 > block*BlockTokens-w.Positions) {
					t.Fatalf("%s: block %d reads block %d: %v", k.Name(), block, b, reads)
				}
			}
			if k.Most() != All && n > k.Most() {
				t.Fatalf("%s: block %d reads %d blocks, at most %d were said", k.Name(), block, n, k.Most())
			}
		}
	}
}

// history drives a cache with random opens, growth, checkpoints, rolling back and frees of texts
// over a tiny alphabet, so that sharing, eviction and duplicates all happen. Its oracle remembers
// what text was last written to every block of every store.
type history struct {
	t       *testing.T
	rng     *rand.Rand
	c       *Cache
	content [][][]int32 // by store and block: the whole text up to what was written last
	open    []*told

	adopted, back, short, copies, drafts, parts int
}

// told is a sequence and its text.
type told struct {
	s    *Sequence
	ids  []int32
	base int // it can be rolled back to here, exactly, where the block is not shared
}

func newHistory(t *testing.T, seed uint64, rows int, specs []Spec) *history {
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 2)), c: New(rows, specs)}
	for _, s := range specs {
		h.content = append(h.content, make([][]int32, s.Blocks))
	}
	return h
}

func (h *history) text() []int32 {
	ids := make([]int32, h.rng.IntN(7*BlockTokens)+1)
	for i := range ids {
		ids[i] = int32(i / BlockTokens * h.rng.IntN(2))
		if i%BlockTokens > 0 {
			ids[i] = ids[i-1]
		}
	}
	return ids
}

// write appends tokens in forwards of random length, or nothing where they cannot be reserved.
func (h *history) write(l *told, ids []int32) bool {
	if !h.c.Reserve(l.s, l.s.Len()+len(ids)) {
		return false
	}
	for len(ids) > 0 {
		n, draft := 1+h.rng.IntN(min(len(ids), h.c.rows)), 0
		from := l.s.Len()
		inBlock := BlockTokens - 1 - (from+n)%BlockTokens
		if h.rng.IntN(2) == 0 && h.c.ReserveDraft(l.s, h.rng.IntN(min(6, h.c.rows))) {
			draft = h.rng.IntN(1 + min(inBlock, len(ids)-n, h.c.rows-n))
		}
		h.c.CoverDraft(l.s, from+n, draft)
		n += draft
		l.ids = append(l.ids, ids[:n]...)
		for i, table := range l.s.Tables(nil) {
			if h.c.stores[i].recurrent() {
				h.writeState(i, table, from, l.ids, draft)
				continue
			}
			for b := from / BlockTokens; b*BlockTokens < from+n; b++ {
				h.content[i][table[b]] = slices.Clone(l.ids[:min(len(l.ids), (b+1)*BlockTokens)])
			}
		}
		n -= draft
		h.c.Append(l.s, ids[:n])
		accepted := h.rng.IntN(draft + 1)
		for accepted > 0 && !h.c.KeepsDraft(l.s, accepted) {
			accepted = h.rng.IntN(2) * draft // all or none
		}
		if accepted > 0 {
			h.c.Append(l.s, ids[n:n+accepted])
			h.drafts++
			if accepted < draft {
				h.parts++
			}
		}
		if accepted < draft {
			h.c.RejectDraft(l.s)
		}
		n += accepted
		l.ids = l.ids[:len(l.ids)-draft+accepted]
		l.base = max(l.base, l.s.Len()-BlockTokens)
		ids = ids[n:]
		h.holds(l)
	}
	return true
}

// writeState is what a forward does to a recurrent store: the state is the whole text before it.
func (h *history) writeState(store int, table []BlockID, from int, ids []int32, draft int) {
	content := h.content[store]
	if id := table[tableFrom]; id == none && from > 0 || id != none && !slices.Equal(content[id], ids[:from]) {
		h.t.Fatalf("a forward from position %d goes on from another text", from)
	}
	content[table[tableTo]] = slices.Clone(ids)
	if before := table[tableBefore]; before != none {
		content[before] = slices.Clone(ids[:len(ids)-draft])
	}
	known := len(ids) - draft
	ends := known/BlockTokens - from/BlockTokens
	for k, id := range table[tableCopies : tableCopies+ends] {
		if id != none {
			content[id] = slices.Clone(ids[:(from/BlockTokens+k+1)*BlockTokens])
			h.copies++
		}
	}
	for k, id := range table[tableCopies+ends:] {
		content[id] = slices.Clone(ids[:known+k+1])
	}
}

// holds checks that every store has what the next row of a sequence reads.
func (h *history) holds(l *told) {
	n := l.s.Len()
	if !slices.Equal(l.s.tokens, l.ids) || n != len(l.ids) {
		h.t.Fatalf("a sequence of %d positions has other tokens than its text of %d", n, len(l.ids))
	}
	for i, table := range l.s.Tables(nil) {
		k := h.c.stores[i].kind
		if h.c.stores[i].recurrent() {
			if m := l.s.of[i]; m.at != n || n > 0 && !slices.Equal(h.content[i][m.from], l.ids) {
				h.t.Fatalf("the state of %d positions is that of another text", n)
			}
			continue
		}
		for b := range BlocksFor(n) {
			if b < n/BlockTokens && !k.Reads(n/BlockTokens, b) {
				continue
			}
			want := l.ids[:min(n, (b+1)*BlockTokens)]
			if got := h.content[i][table[b]]; len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
				h.t.Fatalf("%s: block %d of %d positions holds another text", k.Name(), b, n)
			}
		}
	}
}

func (h *history) begin() {
	ids := h.text()
	l := &told{s: h.c.Open(Salt{})}
	n := h.c.Adopt(l.s, ids)
	h.adopted += n
	l.ids, l.base = slices.Clone(ids[:n]), n
	h.holds(l)
	if n >= len(ids) || n%BlockTokens != 0 {
		h.t.Fatalf("adopted %d of %d positions", n, len(ids))
	}
	if h.write(l, ids[n:]) {
		h.open = append(h.open, l)
	} else {
		h.c.Free(l.s)
	}
}

func (h *history) rollBack(l *told) {
	n := h.rng.IntN(min(l.s.Len(), 2*BlockTokens) + 1)
	if h.rng.IntN(4) == 0 {
		n = h.rng.IntN(l.s.Len() + 1)
	}
	want := l.s.Len() - n
	exact := want >= l.base
	if b := want / BlockTokens; want%BlockTokens > 0 {
		for i := range h.c.stores { // where another sequence shares the block that is written again
			st := &h.c.stores[i]
			if st.recurrent() {
				continue
			}
			exact = exact && l.s.of[i].table[b] != none && st.blocks[l.s.of[i].table[b]].refs == 1
		}
	}
	if slices.ContainsFunc(h.c.stores, func(st store) bool { return st.recurrent() }) {
		exact = n == 0
	}
	got := h.c.RollBack(l.s, n)
	if got > want || exact && got != want || got != l.s.Len() {
		h.t.Fatalf("%d positions rolled back by %d are %d, exact %v", want+n, n, got, exact)
	}
	if got < want {
		h.short++
	}
	h.back++
	l.ids = l.ids[:got]
	if got < l.base {
		l.base = got / BlockTokens * BlockTokens
	}
	h.holds(l)
}

func (h *history) step() {
	any := func() *told { return h.open[h.rng.IntN(len(h.open))] }
	switch op := h.rng.IntN(12); {
	case op < 4 && len(h.open) < 6:
		h.begin()
	case len(h.open) == 0:
	case op < 6:
		h.write(any(), []int32{int32(h.rng.IntN(2))})
	case op < 7:
		h.write(any(), h.text())
	case op < 9:
		h.rollBack(any())
	case op < 10:
		h.c.Checkpoint(any().s, h.rng.IntN(8*BlockTokens))
	default:
		i := h.rng.IntN(len(h.open))
		h.c.Free(h.open[i].s)
		h.open = slices.Delete(h.open, i, i+1)
	}
	var seqs []*Sequence
	for _, l := range h.open {
		seqs = append(seqs, l.s)
	}
	if err := h.c.Check(seqs); err != nil {
		h.t.Fatal(err)
	}
}

// TestRandomHistories checks after each random operation that every block that a sequence will read
// exists and that no other sequence writes to it.
func TestRandomHistories(t *testing.T) {
	for seed, kinds := range [][]Kind{{Full{}}, {Window{100}}, {Full{}, Window{64}}, {ends{}, Full{}},
		{chunk{192}, Full{}},
		{Full{}, Window{1}, Window{130}, ends{}}, {Full{}, Recurrent{}}, {Recurrent{}, Window{64}, Full{}}} {
		for _, blocks := range []int{12, 40} {
			for _, rows := range []int{1, 100} {
				t.Run(fmt.Sprintf("%d stores, %d blocks, %d rows", len(kinds), blocks, rows), func(t *testing.T) {
					specs := Sizes(kinds, blocks, 3, rows)
					for i := range specs {
						if specs[i].States > 0 {
							specs[i].Blocks += blocks / 4 // for copies
						}
					}
					h := newHistory(t, uint64(seed), rows, specs)
					for range 500 {
						h.step()
					}
					if h.adopted == 0 || h.back == 0 {
						t.Errorf("%d positions were adopted, %d times was rolled back", h.adopted, h.back)
					}
					if h.drafts == 0 && rows > 1 {
						t.Error("no draft was accepted")
					}
					if h.parts == 0 && rows > 2 && blocks > 8 {
						t.Error("no draft was accepted in part")
					}
				})
			}
		}
	}
}
