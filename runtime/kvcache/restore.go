package kvcache

import "slices"

// Adopt shares what other sequences computed of a text that begins with these tokens, and returns
// how many positions that filled: a multiple of BlockTokens that is less than len(tokens), because
// the last token has to be computed to have logits. Every store must still have what the rows
// behind them read. The sequence must be empty.
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

// remembered tells whether the stores that forget nothing have a block.
func (c *Cache) remembered(k *key) bool {
	for i := range c.stores {
		if st := &c.stores[i]; !st.bounded() && st.find(k) == none {
			return false
		}
	}
	return true
}

// RollBack forgets the last n positions, and where a store cannot go on from there, as many more as
// bring it to the next place from which all can: the caller computes those again. It returns the
// positions that are left. What was reserved beyond them is given back. Of positions that the
// sequence appended itself the last 64, counted from the most it had, are rolled back exactly, but
// into a full block that another sequence shares, where no store has a state (Rewinds).
func (c *Cache) RollBack(s *Sequence, n int) int {
	if n < 0 || n > s.filled {
		panic("kvcache: RollBack of more positions than there are")
	}
	return c.resume(s, s.filled-n)
}

// Rewinds tells whether single positions can be rolled back: where a store has a state, only to
// where a copy of it is.
func (c *Cache) Rewinds() bool {
	return !slices.ContainsFunc(c.stores, func(st store) bool { return st.recurrent() })
}

// resume brings the sequence to the last position up to n that every store can go on from.
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

// resumable tells whether every store has what a row at position n reads, and the block it goes to
// for this sequence alone.
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

// blockOf is the sequence's block number b in a store: its own, or one that holds the same text.
func (s *Sequence) blockOf(st *store, i, b int) BlockID {
	if t := s.of[i].table; b < len(t) && t[b] != none {
		return t[b]
	}
	if b < len(s.keys) {
		return st.find(&s.keys[b])
	}
	return none
}

// resumeStore makes a store's table that of a sequence of n positions.
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
			st.blocks[id].worth = true // the text may come back to it
			st.drop(id)
		}
	}
	m.table = m.table[:min(len(m.table), BlocksFor(n))]
	if n%BlockTokens > 0 {
		st.forget(m.table[block]) // it is written again
	}
	if st.bounded() {
		st.promised += c.need(st, n) - m.quota
		m.quota = c.need(st, n)
	}
}
