package kvcache

import (
	"crypto/sha256"
	"encoding/binary"
)

// Sequence is the block table of one request. Len positions are filled; the
// table may cover more, which is what Reserve asked for.
type Sequence struct {
	table  []BlockID
	filled int
	// The chain from the salt up to the last full block, and the tokens after it. A sequence
	// that was ever advanced without token ids has no chain any more.
	last    key
	tail    [BlockTokens]int32
	unnamed bool
}

// Salt is what the chain of a sequence starts from. Sequences share blocks only
// with those of their own salt, so that one client cannot find out by what is
// cached what another one asked. The zero value is a salt like any other.
type Salt [sha256.Size]byte

// Open returns an empty sequence. Close it with Free.
func (c *Cache) Open(salt Salt) *Sequence {
	s := &Sequence{}
	if n := len(c.pool); n > 0 {
		s = c.pool[n-1]
		c.pool = c.pool[:n-1]
	}
	s.last = key(salt)
	return s
}

// Len is the number of filled positions.
func (s *Sequence) Len() int { return s.filled }

// Table is the block table; it changes with the next call on this sequence.
func (s *Sequence) Table() []BlockID { return s.table }

// Adopt shares the longest chain of filled blocks that tokens begins with and
// returns how many positions that filled: a multiple of BlockTokens that is
// less than len(tokens), because the last token has to be computed to have
// logits. The sequence must be empty.
func (c *Cache) Adopt(s *Sequence, tokens []int32) int {
	if s.filled != 0 || len(s.table) != 0 {
		panic("kvcache: Adopt on a sequence that is not empty")
	}
	for s.filled+BlockTokens < len(tokens) {
		k := chain(&s.last, tokens[s.filled:s.filled+BlockTokens])
		id := c.find(&k)
		if id == none {
			break
		}
		c.hold(id)
		s.table = append(s.table, id)
		s.last = k
		s.filled += BlockTokens
	}
	return s.filled
}

// Fork returns a new sequence that shares the full blocks of s. The positions
// after the last full block are not shared: the fork computes them again, so
// that no block ever has two writers and none is copied.
func (c *Cache) Fork(s *Sequence) *Sequence {
	f := c.Open(Salt{}) // whose chain is replaced by that of s
	full := s.filled / BlockTokens
	for _, id := range s.table[:full] {
		c.hold(id)
	}
	f.table = append(f.table, s.table[:full]...)
	f.filled, f.last, f.unnamed = full*BlockTokens, s.last, s.unnamed
	return f
}

// Reserve makes the table cover n positions in total. It reports false, and
// changes nothing, where too few blocks are available.
func (c *Cache) Reserve(s *Sequence, n int) bool {
	need := BlocksFor(n) - len(s.table)
	if need > c.idle {
		return false
	}
	for ; need > 0; need-- {
		s.table = append(s.table, c.take())
	}
	return true
}

// Append records that the next len(tokens) positions were computed. They must
// have been reserved. Blocks that become full can be shared from here on.
func (c *Cache) Append(s *Sequence, tokens []int32) {
	s.mustCover(len(tokens))
	for _, t := range tokens {
		at := s.filled % BlockTokens
		s.tail[at] = t
		s.filled++
		if at == BlockTokens-1 && !s.unnamed {
			s.last = chain(&s.last, s.tail[:])
			c.index(s.table[s.filled/BlockTokens-1], &s.last)
		}
	}
}

// Advance is Append for n positions whose tokens are not known, as in a
// simulation; the blocks of such a sequence are never shared afterwards.
func (c *Cache) Advance(s *Sequence, n int) {
	s.mustCover(n)
	s.filled += n
	s.unnamed = true
}

func (s *Sequence) mustCover(n int) {
	if BlocksFor(s.filled+n) > len(s.table) {
		panic("kvcache: positions were not reserved")
	}
}

// Free closes the sequence and gives its blocks back. Full ones stay findable
// until they are needed. The last blocks are given back first, so that of one
// chain the end is overwritten before the beginning it depends on.
func (c *Cache) Free(s *Sequence) {
	for i := len(s.table) - 1; i >= 0; i-- {
		c.drop(s.table[i])
	}
	*s = Sequence{table: s.table[:0]}
	c.pool = append(c.pool, s)
}

// chain is the key of a full block that follows the block of key before.
func chain(before *key, tokens []int32) key {
	var buf [len(key{}) + 4*BlockTokens]byte
	copy(buf[:], before[:])
	for i, t := range tokens {
		binary.LittleEndian.PutUint32(buf[len(before)+4*i:], uint32(t))
	}
	return sha256.Sum256(buf[:])
}
