package kvcache

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func tokens(n int, start int32) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = start + int32(i)
	}
	return t
}

func fill(t *testing.T, c *Cache, ids []int32) *Sequence {
	t.Helper()
	s := c.Open(Salt{})
	n := c.Adopt(s, ids)
	if !c.Reserve(s, len(ids)) {
		t.Fatalf("no room for %d positions in %d available blocks", len(ids), c.Available())
	}
	c.Append(s, ids[n:])
	return s
}

func check(t *testing.T, c *Cache, open ...*Sequence) {
	t.Helper()
	if err := c.Check(open); err != nil {
		t.Fatal(err)
	}
}

func TestPrefixIsShared(t *testing.T) {
	c := New(16)
	long := tokens(3*BlockTokens+5, 100)
	a := fill(t, c, long)
	b := c.Open(Salt{})
	if got := c.Adopt(b, long); got != 3*BlockTokens {
		t.Fatalf("adopted %d positions, want %d", got, 3*BlockTokens)
	}
	if !slices.Equal(a.Table()[:3], b.Table()) {
		t.Fatalf("tables %v and %v share nothing", a.Table(), b.Table())
	}
	check(t, c, a, b)

	// The last token is always computed, even where its block is known.
	d := c.Open(Salt{})
	if got := c.Adopt(d, long[:2*BlockTokens]); got != BlockTokens {
		t.Fatalf("adopted %d of %d positions, want one block less", got, 2*BlockTokens)
	}
	// Equal blocks behind different beginnings are different content.
	e := c.Open(Salt{})
	if got := c.Adopt(e, long[BlockTokens:]); got != 0 {
		t.Fatalf("adopted %d positions of a text that begins elsewhere", got)
	}
	for _, s := range []*Sequence{a, b, d, e} {
		c.Free(s)
	}
	check(t, c)
	if c.Available() != 16 {
		t.Fatalf("%d of 16 blocks available at the end", c.Available())
	}
}

// TestSaltsShareNothing: equal tokens under another salt are other content, and a fork stays under
// its own.
func TestSaltsShareNothing(t *testing.T) {
	c := New(16)
	ids := tokens(2*BlockTokens+5, 100)
	adopt := func(salt Salt) (*Sequence, int) {
		s := c.Open(salt)
		n := c.Adopt(s, ids)
		if !c.Reserve(s, len(ids)) {
			t.Fatal("no room")
		}
		c.Append(s, ids[n:])
		return s, n
	}
	one, two := Salt{1}, Salt{2}
	a, _ := adopt(one)
	b, n := adopt(two)
	if n != 0 {
		t.Errorf("another salt shares %d positions", n)
	}
	again, n := adopt(one)
	if n != 2*BlockTokens {
		t.Errorf("the same salt shares %d positions, want %d", n, 2*BlockTokens)
	}
	f := c.Fork(b)
	if !c.Reserve(f, 3*BlockTokens) {
		t.Fatal("no room")
	}
	c.Append(f, tokens(BlockTokens, 7000))
	c.Free(f)
	other := c.Open(one)
	if n := c.Adopt(other, append(tokens(2*BlockTokens, 100), tokens(BlockTokens+1, 7000)...)); n != 2*BlockTokens {
		t.Errorf("what a fork under another salt added is shared: %d positions", n)
	}
	for _, s := range []*Sequence{a, b, again, other} {
		c.Free(s)
	}
	check(t, c)
}

func TestContentOutlivesItsSequenceUntilNeeded(t *testing.T) {
	c := New(4)
	ids := tokens(3*BlockTokens, 1)
	c.Free(fill(t, c, ids))
	again := fill(t, c, ids)
	if c.Available() != 1 {
		t.Fatalf("%d blocks available beside the chain, want 1", c.Available())
	}
	check(t, c, again)
	c.Free(again)

	// A sequence that needs one old block takes the end of the chain, not its
	// beginning.
	other := fill(t, c, tokens(2*BlockTokens, 5000))
	s := c.Open(Salt{})
	if got := c.Adopt(s, ids); got != 2*BlockTokens {
		t.Fatalf("%d positions left of the old content, want %d", got, 2*BlockTokens)
	}
	check(t, c, other, s)
}

func TestReserveIsAllOrNothing(t *testing.T) {
	c := New(3)
	a := c.Open(Salt{})
	if !c.Reserve(a, BlockTokens) {
		t.Fatal("one block of three was refused")
	}
	b := c.Open(Salt{})
	if c.Reserve(b, 2*BlockTokens+1) {
		t.Fatal("three blocks of two were granted")
	}
	if len(b.Table()) != 0 || c.Available() != 2 {
		t.Fatalf("a refused reservation kept %d blocks, %d available", len(b.Table()), c.Available())
	}
	check(t, c, a, b)
}

func TestForkSharesFullBlocksOnly(t *testing.T) {
	c := New(8)
	a := fill(t, c, tokens(BlockTokens+10, 1))
	f := c.Fork(a)
	if f.Len() != BlockTokens || !slices.Equal(f.Table(), a.Table()[:1]) {
		t.Fatalf("fork has %d positions in %v of %v", f.Len(), f.Table(), a.Table())
	}
	c.Free(a)
	check(t, c, f)
}

func TestUnnamedPositionsAreNeverShared(t *testing.T) {
	c := New(8)
	s := c.Open(Salt{})
	c.Reserve(s, 3*BlockTokens)
	c.Advance(s, BlockTokens)
	c.Append(s, tokens(2*BlockTokens, 0))
	o := c.Open(Salt{})
	if got := c.Adopt(o, make([]int32, 2*BlockTokens)); got != 0 {
		t.Fatalf("adopted %d positions nobody named", got)
	}
	check(t, c, s, o)
}

// TestRandomUse drives the cache with random opens, growth, forks and frees of
// texts over a tiny alphabet, so that sharing, eviction and duplicates all
// happen, and checks every invariant after each step. An oracle remembers what
// was last written to each block: an adopted block must hold the right text.
func TestRandomUse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := New(12)
	content := make([][]int32, 12) // whole text up to the block's end, by oracle
	type live struct {
		s   *Sequence
		ids []int32
	}
	var open []live
	seqs := func() (out []*Sequence) {
		for _, l := range open {
			out = append(out, l.s)
		}
		return out
	}
	text := func() []int32 {
		ids := make([]int32, rng.IntN(4*BlockTokens)+1)
		for i := range ids {
			ids[i] = int32(i / BlockTokens * rng.IntN(2))
			if i%BlockTokens > 0 {
				ids[i] = ids[i-1]
			}
		}
		return ids
	}
	write := func(l *live, ids []int32) bool {
		if !c.Reserve(l.s, l.s.Len()+len(ids)) {
			return false
		}
		for _, id := range ids {
			l.ids = append(l.ids, id)
			content[l.s.Table()[l.s.Len()/BlockTokens]] = slices.Clone(l.ids)
			c.Append(l.s, []int32{id})
		}
		return true
	}
	adopted := 0
	for range 20000 {
		switch op := rng.IntN(10); {
		case op < 4 && len(open) < 6:
			ids := text()
			l := live{s: c.Open(Salt{})}
			n := c.Adopt(l.s, ids)
			adopted += n
			for i := range n / BlockTokens {
				if want := ids[:(i+1)*BlockTokens]; !slices.Equal(content[l.s.Table()[i]], want) {
					t.Fatalf("adopted block %d holds another text", l.s.Table()[i])
				}
			}
			l.ids = slices.Clone(ids[:n])
			if write(&l, ids[n:]) {
				open = append(open, l)
			} else {
				c.Free(l.s)
			}
		case op < 5 && len(open) > 0 && len(open) < 6:
			l := open[rng.IntN(len(open))]
			f := c.Fork(l.s)
			open = append(open, live{f, slices.Clone(l.ids[:f.Len()])})
		case op < 8 && len(open) > 0:
			write(&open[rng.IntN(len(open))], []int32{int32(rng.IntN(2))})
		case len(open) > 0:
			i := rng.IntN(len(open))
			c.Free(open[i].s)
			open = slices.Delete(open, i, i+1)
		}
		check(t, c, seqs()...)
	}
	if adopted == 0 {
		t.Fatal("the test never shared a block")
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	c := New(64)
	s := fill(t, c, tokens(10, 1))
	next := []int32{7}
	grow := func() {
		if s.Len() == 30*BlockTokens {
			c.Free(s)
			s = c.Open(Salt{})
		}
		c.Reserve(s, s.Len()+1)
		c.Append(s, next)
		next[0]++
	}
	for range 40 * BlockTokens {
		grow()
	}
	if got := testing.AllocsPerRun(20*BlockTokens, grow); got != 0 {
		t.Fatalf("%v allocations a token", got)
	}
}

func BenchmarkAppend(b *testing.B) {
	c := New(1024)
	s := c.Open(Salt{})
	next := []int32{0}
	for i := 0; b.Loop(); i++ {
		if s.Len() == 512*BlockTokens {
			c.Free(s)
			s = c.Open(Salt{})
		}
		next[0] = int32(i)
		c.Reserve(s, s.Len()+1)
		c.Append(s, next)
	}
}
