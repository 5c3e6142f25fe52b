package kvcache

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Sequence holds the block tables of one request: Len positions, and one table per store.
type Sequence struct {
	filled int
	salt   key
	tokens []int32  // known tokens, from position 0 on
	keys   []key    // of the full blocks of tokens
	marks  []bool   // by block: the block contains a checkpoint
	of     []memory // by store
	// loading is the position up to which the caller fills blocks (BeginLoad); 0: none.
	loading int
}

// memory is the part of a sequence that belongs to one store.
type memory struct {
	table []BlockID // by block number, none if freed; for a recurrent store see state.go
	quota int       // blocks reserved in a bounded store
	// For a recurrent store: the sequence's own block, the block that the next forward reads, the
	// position of the state in that block, and the end of the prepared forward or notPrepared.
	state, from BlockID
	at, upTo    int
	// The block for the state after a draft, or none; blocks for the states after its first tokens;
	// and the positions before and after the draft.
	ahead            BlockID
	inDraft          []BlockID
	draftAt, aheadAt int
	ends             int // table entries before those of inDraft
}

// Salt starts the hash chain of a sequence. Only sequences with equal salts share blocks, so a
// client cannot detect another client's prompts by cache hits. The zero value is a valid salt.
type Salt [sha256.Size]byte

// Open returns an empty sequence. The caller must close it with Free.
func (c *Cache) Open(salt Salt) *Sequence {
	s := &Sequence{of: make([]memory, len(c.stores))}
	if n := len(c.pool); n > 0 {
		s = c.pool[n-1]
		c.pool = c.pool[:n-1]
	}
	for i := range s.of {
		m := &s.of[i]
		m.state, m.from, m.at, m.upTo, m.ahead, m.aheadAt = none, none, 0, notPrepared, none, notPrepared
	}
	s.salt = key(salt)
	return s
}

// Len returns the number of filled positions.
func (s *Sequence) Len() int { return s.filled }

// Tables appends the block table of each store to dst and returns the result. The tables are valid
// until the next change to the sequence.
func (s *Sequence) Tables(dst Tables) Tables {
	for i := range s.of {
		dst = append(dst, s.of[i].table)
	}
	return dst
}

// Reserve reserves blocks for n positions in total. If too few blocks are available, it changes
// nothing and returns false.
func (c *Cache) Reserve(s *Sequence, n int) bool { return c.ReserveLeaving(s, n, 0) }

// ReserveLeaving is Reserve, but takes further blocks only if so many others stay available in each
// store that is not recurrent.
func (c *Cache) ReserveLeaving(s *Sequence, n, others int) bool {
	for i := range c.stores {
		st := &c.stores[i]
		more := c.need(st, n) - s.has(st, i)
		if more > st.available() || more > 0 && !st.recurrent() && more+others > st.available() {
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

// has returns the number of blocks of a store that the sequence has reserved.
func (s *Sequence) has(st *store, i int) int {
	if st.recurrent() {
		return min(1, int(s.of[i].state)-int(none))
	}
	if st.bounded() {
		return s.of[i].quota
	}
	return len(s.of[i].table)
}

// Cover allocates the blocks that a forward from Len up to position n writes. The positions must
// have been reserved, or Cover panics; n is at most Len plus the rows of a forward (see New).
func (c *Cache) Cover(s *Sequence, n int) { c.CoverDraft(s, n, 0) }

// CoverDraft allocates the blocks that a forward writes up to position n and for draft further
// tokens. If draft is above 0, ReserveDraft must have been called. The caller then appends the
// positions up to n, and after that the accepted tokens of the draft: any number if Rewinds is
// true, else as many as KeepsDraft allows, or none by calling RejectDraft.
func (c *Cache) CoverDraft(s *Sequence, n, draft int) {
	for i := range c.stores {
		if c.stores[i].recurrent() {
			c.coverState(s, i, n, draft)
		}
	}
	c.coverBlocks(s, n+draft)
}

// coverBlocks implements Cover for stores that are not recurrent.
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

// Append records that the next len(tokens) positions, which must have been reserved, were computed.
// Blocks that become full can then be shared, and blocks that are no longer read are released.
// After positions without known tokens (see Advance), Append does not record the tokens.
func (c *Cache) Append(s *Sequence, tokens []int32) {
	if len(s.tokens) < s.filled {
		c.Advance(s, len(tokens)) // after positions without tokens
		return
	}
	from := s.filled
	c.prepareStates(s, from+len(tokens))
	for len(tokens) > 0 {
		n := min(len(tokens), BlockTokens-s.filled%BlockTokens)
		s.tokens = append(s.tokens, tokens[:n]...)
		c.step(s, n)
		tokens = tokens[n:]
	}
	c.completeStates(s, from)
}

// Advance records n computed positions without known tokens, as in a simulation. Blocks that
// contain or follow such positions are not shared.
func (c *Cache) Advance(s *Sequence, n int) {
	from := s.filled
	c.prepareStates(s, from+n)
	for n > 0 {
		now := min(n, BlockTokens-s.filled%BlockTokens)
		c.step(s, now)
		n -= now
	}
	c.completeStates(s, from)
}

// Pass advances the sequence by n positions, in steps of at most `rows` positions, without
// computing them. The positions must have been reserved. Benchmarks use it, since the time of
// attention does not depend on the values read.
func (c *Cache) Pass(s *Sequence, n, rows int) {
	for end := s.filled + n; s.filled < end; {
		now := min(rows, end-s.filled)
		c.Cover(s, s.filled+now)
		c.Advance(s, now)
	}
}

// step advances by n positions within one block. If the block becomes full, step indexes it and
// releases blocks that are no longer read.
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

// trim releases the blocks of a store that the last full block does not read. It retains the blocks
// that only this block reads, so that a few positions can be rolled back across its end.
func (c *Cache) trim(s *Sequence, i int) {
	st, m := &c.stores[i], &s.of[i]
	last := s.filled/BlockTokens - 1
	if !st.bounded() || st.recurrent() {
		return
	}
	for b, id := range m.table[:max(0, last)] {
		if id != none && !st.kind.Reads(last, b) {
			if s.readByCheckpoint(st.kind, b, last) {
				st.blocks[id].checkpoint = true
			}
			st.drop(id)
			m.table[b] = none
		}
	}
}

// gridFactor is the number of window lengths between two automatic checkpoints of a sequence. They
// retain at most 1/gridFactor of the blocks of a long context.
const gridFactor = 4

// readByCheckpoint reports whether block b is read by a block at a checkpoint, up to block `to`.
func (s *Sequence) readByCheckpoint(k Kind, b, to int) bool {
	grid := gridFactor * max(1, k.Most())
	for at := b + 1; at <= to && k.Reads(at, b); at++ {
		if at%grid == 0 || at < len(s.marks) && s.marks[at] {
			return true
		}
	}
	return false
}

// Checkpoint marks a position, filled or not, at which this text or another text with the same
// prefix is likely to be continued. The blocks that the block of this position reads are retained
// longer than other blocks that no sequence holds.
func (c *Cache) Checkpoint(s *Sequence, pos int) {
	b := pos / BlockTokens
	if b >= len(s.marks) {
		s.marks = append(s.marks, make([]bool, b+1-len(s.marks))...)
	}
	s.marks[b] = true
}

// Free closes the sequence and releases its blocks. Full blocks can still be found until they are
// reused; the end of the sequence counts as a checkpoint. The last blocks are released first, so
// that the end of a chain is overwritten before the beginning that it depends on. The sequence must
// not be used afterwards.
func (c *Cache) Free(s *Sequence) {
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if st.recurrent() {
			st.freeState(s, m)
			continue
		}
		for _, id := range slices.Backward(m.table) {
			if id != none {
				st.blocks[id].checkpoint = true
				st.drop(id)
			}
		}
		st.promised -= m.quota
		m.table, m.quota = m.table[:0], 0
	}
	*s = Sequence{tokens: s.tokens[:0], keys: s.keys[:0], marks: s.marks[:0], of: s.of}
	c.pool = append(c.pool, s)
}

// before returns the key of the block before block b, or the salt for block 0.
func (s *Sequence) before(b int) *key {
	if b == 0 {
		return &s.salt
	}
	return &s.keys[b-1]
}

// chain returns the key of a full block of tokens that follows the block with key before.
func chain(before *key, tokens []int32) key {
	var buf [len(key{}) + 4*BlockTokens]byte
	copy(buf[:], before[:])
	for i, t := range tokens[:BlockTokens] {
		binary.LittleEndian.PutUint32(buf[len(before)+4*i:], uint32(t))
	}
	return sha256.Sum256(buf[:])
}
