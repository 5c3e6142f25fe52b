package kvcache

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Sequence is the memory of one request: Len positions, and of each store a table of the blocks
// that hold them.
type Sequence struct {
	filled int
	salt   key
	tokens []int32 // of the positions, as far as they were named
	keys   []key   // of the full blocks among these
	marks  []bool  // by block: what it reads is worth keeping
	of     []memory
}

// memory is what a sequence has of one store.
type memory struct {
	table []BlockID // by number of block; none where it was freed. Of a recurrent store: see state.go
	quota int       // of a bounded kind: blocks that were promised to it
	// Of a recurrent store: the sequence's own block, what the next forward reads, the position of
	// that, and up to where a forward is laid out.
	state, from BlockID
	at, upTo    int
}

// Salt is what the chain of a sequence starts from. Sequences share blocks only
// with those of their own salt, so that one client cannot find out by what is
// cached what another one asked. The zero value is a salt like any other.
type Salt [sha256.Size]byte

// Open returns an empty sequence. Close it with Free.
func (c *Cache) Open(salt Salt) *Sequence {
	s := &Sequence{of: make([]memory, len(c.stores))}
	if n := len(c.pool); n > 0 {
		s = c.pool[n-1]
		c.pool = c.pool[:n-1]
	}
	for i := range s.of {
		m := &s.of[i]
		m.state, m.from, m.at, m.upTo = none, none, 0, notLaid
	}
	s.salt = key(salt)
	return s
}

// Len is the number of filled positions.
func (s *Sequence) Len() int { return s.filled }

// Tables appends the block table of each store to dst. They change with the next call on this
// sequence.
func (s *Sequence) Tables(dst Tables) Tables {
	for i := range s.of {
		dst = append(dst, s.of[i].table)
	}
	return dst
}

// Reserve makes sure of the blocks for n positions in total. It reports false, and changes nothing,
// where too few are available.
func (c *Cache) Reserve(s *Sequence, n int) bool {
	for i := range c.stores {
		if st := &c.stores[i]; c.need(st, n)-s.has(st, i) > st.available() {
			return false
		}
	}
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if st.recurrent() {
			if n > 0 {
				st.reserveState(m)
			}
			continue
		}
		if st.bounded() {
			more := max(0, c.need(st, n)-m.quota)
			m.quota, st.promised = m.quota+more, st.promised+more
			continue
		}
		for len(m.table) < BlocksFor(n) {
			m.table = append(m.table, st.take())
		}
	}
	return true
}

// has is how many blocks of a store the sequence was given.
func (s *Sequence) has(st *store, i int) int {
	if st.recurrent() {
		return min(1, int(s.of[i].state)-int(none))
	}
	if st.bounded() {
		return s.of[i].quota
	}
	return len(s.of[i].table)
}

// Cover gives the sequence the blocks that a forward up to position n writes to. They must have
// been reserved, and n lies at most the rows of a forward behind Len.
func (c *Cache) Cover(s *Sequence, n int) {
	for i := range c.stores {
		if c.stores[i].recurrent() {
			c.coverState(s, i, n)
		}
	}
	c.coverBlocks(s, n)
}

// coverBlocks is Cover for the stores that grow.
func (c *Cache) coverBlocks(s *Sequence, n int) {
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if st.recurrent() {
			continue
		}
		if c.need(st, n) > s.has(st, i) {
			panic("kvcache: positions were not reserved")
		}
		for len(m.table) < BlocksFor(n) {
			m.table = append(m.table, st.take())
		}
	}
}

// Append records that the next len(tokens) positions were computed. They must have been reserved.
// Blocks that become full can be shared from here on, and those that nothing reads any more are
// given back.
func (c *Cache) Append(s *Sequence, tokens []int32) {
	if len(s.tokens) < s.filled {
		c.Advance(s, len(tokens)) // after positions without tokens
		return
	}
	from := s.filled
	c.layStates(s, from+len(tokens))
	for len(tokens) > 0 {
		n := min(len(tokens), BlockTokens-s.filled%BlockTokens)
		s.tokens = append(s.tokens, tokens[:n]...)
		c.step(s, n)
		tokens = tokens[n:]
	}
	c.landStates(s, from)
}

// Advance is Append for n positions whose tokens are not known, as in a
// simulation; they are never shared, nor what follows them.
func (c *Cache) Advance(s *Sequence, n int) {
	from := s.filled
	c.layStates(s, from+n)
	for n > 0 {
		now := min(n, BlockTokens-s.filled%BlockTokens)
		c.step(s, now)
		n -= now
	}
	c.landStates(s, from)
}

// Pass advances by n more positions without computing them, as forwards of at most `rows` rows
// would write them: for benchmarks, since how long attention takes does not depend on what it
// reads. They must have been reserved.
func (c *Cache) Pass(s *Sequence, n, rows int) {
	for end := s.filled + n; s.filled < end; {
		now := min(rows, end-s.filled)
		c.Cover(s, s.filled+now)
		c.Advance(s, now)
	}
}

// step fills n positions of one block.
func (c *Cache) step(s *Sequence, n int) {
	c.coverBlocks(s, s.filled+n)
	s.filled += n
	if s.filled%BlockTokens != 0 {
		return
	}
	b := s.filled/BlockTokens - 1
	if len(s.tokens) == s.filled {
		s.keys = append(s.keys, chain(s.before(b), s.tokens[b*BlockTokens:]))
		for i := range c.stores {
			if st := &c.stores[i]; !st.recurrent() {
				st.index(s.of[i].table[b], &s.keys[b])
			}
		}
	}
	for i := range c.stores {
		c.trim(s, i)
	}
}

// trim gives the blocks of a store back that the block before the current one does not read: one
// block later than it could, so that a few positions can be rolled back over its border.
func (c *Cache) trim(s *Sequence, i int) {
	st, m := &c.stores[i], &s.of[i]
	behind := s.filled/BlockTokens - 1
	if !st.bounded() || st.recurrent() {
		return
	}
	for b, id := range m.table[:max(0, behind)] {
		if id != none && !st.kind.Reads(behind, b) {
			if s.worth(st.kind, b, behind) {
				st.blocks[id].worth = true
			}
			st.drop(id)
			m.table[b] = none
		}
	}
}

// gridFactor is how many windows lie between two checkpoints that every sequence has of itself:
// what they keep of a long context is at most one part in so many of all of it.
const gridFactor = 4

// worth tells whether a checkpoint up to block `to` reads block b.
func (s *Sequence) worth(k Kind, b, to int) bool {
	grid := gridFactor * max(1, k.Most())
	for at := b + 1; at <= to && k.Reads(at, b); at++ {
		if at%grid == 0 || at < len(s.marks) && s.marks[at] {
			return true
		}
	}
	return false
}

// Checkpoint marks a position, filled already or not, as one that this text, or another one that
// begins like it, will likely be continued from: what its block reads is kept longer than other
// content that no sequence holds.
func (c *Cache) Checkpoint(s *Sequence, pos int) {
	b := pos / BlockTokens
	if b >= len(s.marks) {
		s.marks = append(s.marks, make([]bool, b+1-len(s.marks))...)
	}
	s.marks[b] = true
}

// Free closes the sequence and gives its blocks back. Full ones stay findable until they are
// needed: its end is a checkpoint. The last blocks are given back first, so that of one chain the
// end is overwritten before the beginning it depends on.
func (c *Cache) Free(s *Sequence) {
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if st.recurrent() {
			st.freeState(s, m)
			continue
		}
		for _, id := range slices.Backward(m.table) {
			if id != none {
				st.blocks[id].worth = true
				st.drop(id)
			}
		}
		st.promised -= m.quota
		m.table, m.quota = m.table[:0], 0
	}
	*s = Sequence{tokens: s.tokens[:0], keys: s.keys[:0], marks: s.marks[:0], of: s.of}
	c.pool = append(c.pool, s)
}

// before is the key that block b follows.
func (s *Sequence) before(b int) *key {
	if b == 0 {
		return &s.salt
	}
	return &s.keys[b-1]
}

// chain is the key of a full block that follows the block of key before.
func chain(before *key, tokens []int32) key {
	var buf [len(key{}) + 4*BlockTokens]byte
	copy(buf[:], before[:])
	for i, t := range tokens[:BlockTokens] {
		binary.LittleEndian.PutUint32(buf[len(before)+4*i:], uint32(t))
	}
	return sha256.Sum256(buf[:])
}
