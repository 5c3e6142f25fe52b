package kvcache

import "crypto/sha256"

// Key identifies the content of a block: it is the chained hash of a salt and of all tokens up to
// the end of the block.
type Key = [sha256.Size]byte

// Keys returns the keys of the full blocks of a text.
func Keys(salt Salt, tokens []int32) []Key {
	keys := make([]Key, 0, len(tokens)/BlockTokens)
	before := key(salt)
	for len(tokens) >= BlockTokens {
		before = chain(&before, tokens)
		keys = append(keys, before)
		tokens = tokens[BlockTokens:]
	}
	return keys
}

// Piece is block number Block of a sequence in a store. ID is its physical block. In a recurrent
// store it is the state at the end of the block.
type Piece struct {
	Store, Block int
	ID           BlockID
}

// Needed lists the blocks that must be present in store number store, of kind k, to resume a
// sequence from position n, a multiple of BlockTokens. It leaves their IDs unset.
func Needed(k Kind, store, n int) (list []Piece) {
	for b := range n / BlockTokens {
		if k.Reads(n/BlockTokens, b) {
			list = append(list, Piece{Store: store, Block: b, ID: none})
		}
	}
	return list
}

// BeginLoad prepares a sequence to resume from position n with content from outside the cache. n is
// a multiple of BlockTokens above Len, and more than n positions must have been reserved. BeginLoad
// returns the blocks to fill. Until EndLoad or Free, no other method may be called with the
// sequence, and the blocks belong to the caller.
func (c *Cache) BeginLoad(s *Sequence, n int) (list []Piece) {
	if n <= s.filled || n%BlockTokens != 0 || s.filled%BlockTokens != 0 {
		panic("kvcache: BeginLoad needs a full block that the sequence does not have")
	}
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		switch {
		case st.recurrent():
			list = append(list, Piece{Store: i, Block: n/BlockTokens - 1, ID: st.beginLoadState(m, n)})
		case st.bounded():
			list = c.beginLoadBounded(s, i, n, list)
		default:
			if len(m.table) < BlocksFor(n) {
				panic("kvcache: positions were not reserved")
			}
			for b := s.filled / BlockTokens; b < n/BlockTokens; b++ {
				list = append(list, Piece{Store: i, Block: b, ID: m.table[b]})
			}
		}
	}
	s.loading = n
	return list
}

// beginLoadBounded releases the blocks that position n does not read, and allocates those that it
// reads and the sequence does not have.
func (c *Cache) beginLoadBounded(s *Sequence, i, n int, list []Piece) []Piece {
	st, m := &c.stores[i], &s.of[i]
	block := n / BlockTokens
	for b, id := range m.table {
		if id != none && !st.kind.Reads(block, b) {
			st.drop(id)
			m.table[b] = none
		}
	}
	for len(m.table) < block {
		m.table = append(m.table, none)
	}
	for b, id := range m.table {
		if id == none && st.kind.Reads(block, b) {
			m.table[b] = st.take()
			list = append(list, Piece{Store: i, Block: b, ID: m.table[b]})
		}
	}
	return list
}

// beginLoadState returns the block that a state at position n is loaded to: one for a copy that
// other sequences can share, or else the sequence's own.
func (c *store) beginLoadState(m *memory, n int) BlockID {
	if m.state == none {
		panic("kvcache: positions were not reserved")
	}
	c.dropCopies(m)
	c.dropFrom(m)
	m.at, m.from = n, m.state
	if c.room() > 0 {
		m.from = c.take()
	}
	return m.from
}

// EndLoad records that the blocks of BeginLoad are filled. tokens are those of the positions from
// Len on; blocks can be shared from now on.
func (c *Cache) EndLoad(s *Sequence, tokens []int32) {
	n := s.loading
	if n == 0 || s.filled+len(tokens) != n {
		panic("kvcache: EndLoad without BeginLoad, or with another number of tokens")
	}
	for ; len(tokens) > 0; tokens = tokens[BlockTokens:] {
		s.keys = append(s.keys, chain(s.before(len(s.keys)), tokens))
		s.tokens = append(s.tokens, tokens[:BlockTokens]...)
	}
	s.filled, s.loading = n, 0
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if st.recurrent() {
			if m.from != m.state {
				st.index(m.from, &s.keys[n/BlockTokens-1])
				st.blocks[m.from].checkpoint = true
			}
			continue
		}
		for b, id := range m.table[:n/BlockTokens] {
			if id != none && !st.blocks[id].indexed {
				st.index(id, &s.keys[b])
			}
		}
	}
}

// Pin finds the cached block of a store with a key and holds it, so that its content can be copied
// while sequences run. It returns false if there is none, or if holding it would take a block that
// a sequence has reserved. The caller releases it with Unpin.
func (c *Cache) Pin(store int, k *Key) (BlockID, bool) {
	st := &c.stores[store]
	id := st.find((*key)(k))
	switch {
	case id == none:
		return none, false
	case st.recurrent():
		if st.blocks[id].refs == 0 && st.room() <= 0 {
			return none, false
		}
	case st.bounded():
		if st.available() <= 0 {
			return none, false
		}
		st.promised++
	}
	st.hold(id)
	st.pins = append(st.pins, id)
	return id, true
}

// Unpin releases a block of Pin.
func (c *Cache) Unpin(store int, id BlockID) {
	st := &c.stores[store]
	for i, pinned := range st.pins {
		if pinned == id {
			st.pins = append(st.pins[:i], st.pins[i+1:]...)
			if st.bounded() && !st.recurrent() {
				st.promised--
			}
			st.drop(id)
			return
		}
	}
	panic("kvcache: Unpin of a block that is not pinned")
}

// Has reports whether a store has a cached block with a key.
func (c *Cache) Has(store int, k *Key) bool { return c.stores[store].find((*key)(k)) != none }

// NextKey returns the key of a full block of tokens that follows the block with key before, or the
// salt.
func NextKey(before Key, tokens []int32) Key {
	return chain((*key)(&before), tokens)
}
