package kvcache

import "slices"

// Adopt fills an empty sequence with cached blocks of the longest usable prefix and returns its
// length: a multiple of BlockTokens below len(tokens), since the last token must be computed for
// its logits. A prefix is usable if every store has the blocks that the rows after it read. Adopt
// panics if the sequence is not empty.
func (c *Cache) Adopt(s *Sequence, tokens []int32) int {
	if s.filled != 0 || len(s.tokens) != 0 {
		panic("kvcache: Adopt on a sequence that is not empty")
	}
	for b := 0; (b+1)*BlockTokens < len(tokens); b++ {
		k := chain(s.before(b), tokens[b*BlockTokens:])
		if !c.remembered(&k) {
			break
		}
		s.keys = append(s.keys, k)
	}
	n := c.resume(s, len(s.keys)*BlockTokens)
	s.tokens = append(s.tokens, tokens[:n]...)
	return n
}

// remembered reports whether all unbounded stores have the block of a key.
func (c *Cache) remembered(k *key) bool {
	for i := range c.stores {
		if st := &c.stores[i]; !st.bounded() && st.find(k) == none {
			return false
		}
	}
	return true
}

// RollBack removes at least the last n positions, down to the nearest position from which all
// stores can resume, and returns the remaining length. Positions removed beyond n must be computed
// again. Blocks and quotas beyond the remaining length are released. RollBack is exact if no store
// is recurrent (see Rewinds) and the target is within the last BlockTokens positions, counted from
// the greatest length of the sequence, that the sequence appended itself and not in a full block
// shared with another sequence. RollBack panics if n is negative or above Len.
func (c *Cache) RollBack(s *Sequence, n int) int {
	if n < 0 || n > s.filled {
		panic("kvcache: RollBack of more positions than there are")
	}
	return c.resume(s, s.filled-n)
}

// Rewinds reports whether single positions can be rolled back, which requires that no store is
// recurrent. A recurrent store can resume only at a copy of its state.
func (c *Cache) Rewinds() bool {
	return !slices.ContainsFunc(c.stores, func(st store) bool { return st.recurrent() })
}

// resume truncates or extends the tables to the last position up to n from which every store can
// resume, and returns that position.
func (c *Cache) resume(s *Sequence, n int) int {
	for !c.resumable(s, n) {
		n = (n - 1) / BlockTokens * BlockTokens
	}
	for i := range c.stores {
		c.resumeStore(s, i, n)
	}
	s.filled = n
	s.tokens = s.tokens[:min(n, len(s.tokens))]
	s.keys = s.keys[:min(n/BlockTokens, len(s.keys))]
	return n
}

// resumable reports whether every store has the blocks that a row at position n reads, and whether
// the block that contains position n, if partly filled, is held by this sequence only.
func (c *Cache) resumable(s *Sequence, n int) bool {
	if n == 0 {
		return true
	}
	block := n / BlockTokens
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if st.recurrent() {
			if !st.stateResumable(s, m, n) {
				return false
			}
			continue
		}
		if n%BlockTokens > 0 && (m.table[block] == none || st.blocks[m.table[block]].refs > 1) {
			return false
		}
		if st.bounded() && c.need(st, n)-m.quota > st.available() {
			return false
		}
		left := st.kind.Most()
		for b := block - 1; b >= 0 && left != 0; b-- {
			if !st.kind.Reads(block, b) {
				continue
			}
			if s.blockOf(st, i, b) == none {
				return false
			}
			left--
		}
	}
	return true
}

// blockOf returns block number b of the sequence in a store: its own block, or a cached block with
// the same tokens, or none.
func (s *Sequence) blockOf(st *store, i, b int) BlockID {
	if t := s.of[i].table; b < len(t) && t[b] != none {
		return t[b]
	}
	if b < len(s.keys) {
		return st.find(&s.keys[b])
	}
	return none
}

// resumeStore sets the table of store i for a sequence of n positions.
func (c *Cache) resumeStore(s *Sequence, i, n int) {
	st, m := &c.stores[i], &s.of[i]
	if st.recurrent() {
		st.resumeState(s, m, n)
		return
	}
	block := n / BlockTokens
	for b := range block {
		if b == len(m.table) {
			m.table = append(m.table, none)
		}
		if m.table[b] == none && st.kind.Reads(block, b) {
			m.table[b] = s.blockOf(st, i, b)
			st.hold(m.table[b])
		}
	}
	for b := len(m.table) - 1; b >= BlocksFor(n); b-- {
		if id := m.table[b]; id != none {
			st.blocks[id].checkpoint = true // the removed tokens may be appended again
			st.drop(id)
		}
	}
	m.table = m.table[:min(len(m.table), BlocksFor(n))]
	if n%BlockTokens > 0 {
		st.forget(m.table[block]) // it will be overwritten
	}
	if st.bounded() {
		st.promised += c.need(st, n) - m.quota
		m.quota = c.need(st, n)
	}
}
