package kvcache

import (
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
		t.Fatalf("no room for %d positions in %d available blocks", len(ids), c.Idle())
	}
	c.Append(s, ids[n:])
	return s
}

// table is that of a cache of one store.
func (s *Sequence) table() []BlockID { return s.of[0].table }

func check(t *testing.T, c *Cache, open ...*Sequence) {
	t.Helper()
	if err := c.Check(open); err != nil {
		t.Fatal(err)
	}
}

func TestPrefixIsShared(t *testing.T) {
	c := New(64, Paged(16))
	long := tokens(3*BlockTokens+5, 100)
	a := fill(t, c, long)
	b := c.Open(Salt{})
	if got := c.Adopt(b, long); got != 3*BlockTokens {
		t.Fatalf("adopted %d positions, want %d", got, 3*BlockTokens)
	}
	if !slices.Equal(a.table()[:3], b.table()) {
		t.Fatalf("tables %v and %v share nothing", a.table(), b.table())
	}
	check(t, c, a, b)

	// The last token is always computed, even if its block is cached.
	d := c.Open(Salt{})
	if got := c.Adopt(d, long[:2*BlockTokens]); got != BlockTokens {
		t.Fatalf("adopted %d of %d positions, want one block less", got, 2*BlockTokens)
	}
	// Equal blocks after different prefixes have different content.
	e := c.Open(Salt{})
	if got := c.Adopt(e, long[BlockTokens:]); got != 0 {
		t.Fatalf("adopted %d positions of a text that begins elsewhere", got)
	}
	for _, s := range []*Sequence{a, b, d, e} {
		c.Free(s)
	}
	check(t, c)
	if c.Idle() != 16 {
		t.Fatalf("%d of 16 blocks available at the end", c.Idle())
	}
}

// TestSaltsShareNothing checks that equal tokens under another salt share no block.
func TestSaltsShareNothing(t *testing.T) {
	c := New(64, Paged(16))
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
	for _, s := range []*Sequence{a, b, again} {
		c.Free(s)
	}
	check(t, c)
}

func TestContentOutlivesItsSequenceUntilNeeded(t *testing.T) {
	c := New(64, Paged(4))
	ids := tokens(3*BlockTokens, 1)
	c.Free(fill(t, c, ids))
	again := fill(t, c, ids)
	if c.Idle() != 1 {
		t.Fatalf("%d blocks available in addition to the chain, want 1", c.Idle())
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
	c := New(64, Paged(3))
	a := c.Open(Salt{})
	if !c.Reserve(a, BlockTokens) {
		t.Fatal("one block of three was refused")
	}
	b := c.Open(Salt{})
	if c.Reserve(b, 2*BlockTokens+1) {
		t.Fatal("three blocks of two were granted")
	}
	if len(b.table()) != 0 || c.Idle() != 2 {
		t.Fatalf("a refused reservation kept %d blocks, %d available", len(b.table()), c.Idle())
	}
	check(t, c, a, b)
}

func TestUnnamedPositionsAreNeverShared(t *testing.T) {
	c := New(64, Paged(8))
	s := c.Open(Salt{})
	c.Reserve(s, 3*BlockTokens)
	c.Advance(s, BlockTokens)
	c.Append(s, tokens(2*BlockTokens, 0))
	o := c.Open(Salt{})
	if got := c.Adopt(o, make([]int32, 2*BlockTokens)); got != 0 {
		t.Fatalf("adopted %d positions without tokens", got)
	}
	check(t, c, s, o)
}

// TestPassedPositions checks that after Pass each store has the blocks that the next row reads, a
// window no others, and that these are not shared.
func TestPassedPositions(t *testing.T) {
	c := New(BlockTokens, []Spec{{Kind: Full{}, Blocks: 20}, {Kind: Window{64}, Blocks: 6}})
	s := c.Open(Salt{})
	const n = 9*BlockTokens + 5
	if !c.Reserve(s, n+1) {
		t.Fatal("no room for a sequence")
	}
	c.Pass(s, n, BlockTokens)
	check(t, c, s)
	if held := 26 - c.Idle(); s.Len() != n || held != 10+3 {
		t.Errorf("%d positions in %d blocks", s.Len(), held)
	}
	c.Cover(s, n+1)
	c.Append(s, tokens(1, 0))
	o := c.Open(Salt{})
	if got := c.Adopt(o, make([]int32, n)); got != 0 {
		t.Errorf("adopted %d positions that were not computed", got)
	}
	check(t, c, s, o)
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	c := New(64, Paged(64))
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
	c := New(64, Paged(1024))
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

// TestCheckpointsAreKept checks that the blocks that checkpoints and the end of a text read stay
// while all others are overwritten, and that a text that branches between checkpoints resumes at
// the last one before.
func TestCheckpointsAreKept(t *testing.T) {
	c := New(BlockTokens, []Spec{{Kind: Window{64}, Blocks: 13}}) // a block reads the one before it
	ids := tokens(30*BlockTokens+7, 100)
	s := c.Open(Salt{})
	c.Checkpoint(s, 10*BlockTokens+5)
	if !c.Reserve(s, len(ids)) {
		t.Fatalf("no room for a window of %d positions", len(ids))
	}
	c.Append(s, ids)
	check(t, c, s)
	if held := 13 - c.Idle(); held > 4 {
		t.Errorf("%d blocks are held for a window of one", held)
	}
	c.Free(s)
	for branch, want := range map[int]int{10*BlockTokens + 9: 10, 15*BlockTokens + 9: 12, 16*BlockTokens + 1: 16,
		30*BlockTokens + 7: 30} {
		s := c.Open(Salt{})
		if got := c.Adopt(s, append(slices.Clone(ids[:branch]), 7, 8)); got != want*BlockTokens {
			t.Errorf("a text that branches at %d goes on from %d, not from %d", branch, got, want*BlockTokens)
		}
		check(t, c, s)
		c.Free(s)
	}
}

// TestBoundedMemoryIsFlat checks that Sizes gives a bounded store the same number of blocks for
// every long context, and no more than a short context has.
func TestBoundedMemoryIsFlat(t *testing.T) {
	kinds := []Kind{Window{1000}, Full{}}
	short, long := Sizes(kinds, 500, 4, 512), Sizes(kinds, 100000, 4, 512)
	if short[0] != long[0] || long[1].Blocks != 100000 {
		t.Errorf("stores of %v and of %v", short, long)
	}
	if one := Sizes(kinds, 3, 4, 512); one[0].Blocks != 3 {
		t.Errorf("a context of 3 blocks is given %d", one[0].Blocks)
	}
}

// TestCopiesOfChats checks that copies of the state of a long chat remain on the grid and after the
// last messages, as many as there are blocks for, and that other copies do not evict these.
func TestCopiesOfChats(t *testing.T) {
	for room, wants := range map[int]map[int]int{
		10: {20: 16, 33: 32, 36: 32, 37: 37, 39: 39, 40: 40},
		64: {20: 16, 32: 32, 33: 33, 36: 36, 40: 40}, // eight
	} {
		c := New(8*BlockTokens, []Spec{{Kind: Full{}, Blocks: 128}, {Kind: Recurrent{}, Blocks: 2 + room, States: 2}})
		ids := tokens(40*BlockTokens+7, 100)
		s := c.Open(Salt{})
		for b := 1; b <= 40; b++ {
			c.Checkpoint(s, b*BlockTokens)
		}
		if !c.Reserve(s, len(ids)) {
			t.Fatal("no room")
		}
		for from := 0; from < len(ids); from += 8 * BlockTokens {
			c.Append(s, ids[from:min(len(ids), from+8*BlockTokens)])
		}
		check(t, c, s)
		c.Free(s)
		for branch, want := range wants {
			s := c.Open(Salt{})
			if got := c.Adopt(s, append(slices.Clone(ids[:branch*BlockTokens+3]), 7, 8)); got != want*BlockTokens {
				t.Errorf("room for %d: a chat that branches behind block %d goes on from %d, not from %d", room, branch,
					got/BlockTokens, want)
			}
			check(t, c, s)
			c.Free(s)
		}
	}
}
