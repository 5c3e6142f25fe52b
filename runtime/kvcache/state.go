package kvcache

// The recurrent store. Of a sequence it holds one block, its state, which every forward leaves
// where the forward ends. On the way a forward puts copies into other blocks, behind blocks of 64
// positions, as far as there are some that no sequence may need: those are found by the text like
// the blocks of any store, and a sequence that continues from one reads it and writes to a state of
// its own.
//
// Of such a store a table says what the next forward does:
//
//	[0]     the block that it reads, NoState before the first position
//	[1]     the block that it leaves the state in, often the same
//	[2+i]   where a copy stays behind block first+i, NoState for nowhere; first is that of its first row

// NoState stands in a recurrent store's table for no block.
const NoState = none

const (
	tableFrom = iota
	tableTo
	tableCopies
)

// stateGrid is how many blocks lie between two copies that every text gets of itself: so far a text
// is computed again at most that continues at a place without a mark.
const stateGrid = 16

// markShare is how much of the room for copies a text may have for the places that were marked in
// it, one part in so many, and fewMarks how many of them it has at least. A chat is gone on with
// behind its last messages; were every message's end kept, one long chat would push the grid out,
// its own too.
const markShare, fewMarks = 8, 4

// marked tells whether a copy is kept before block b since the place was marked: it is one of the
// last of the text.
func (c *store) marked(s *Sequence, b int) bool {
	if b >= len(s.marks) || !s.marks[b] {
		return false
	}
	left := max(fewMarks, (len(c.blocks)-c.states)/markShare)
	for _, later := range s.marks[b+1:] {
		if later {
			left--
		}
	}
	return left > 0
}

// room is how many blocks of a recurrent store may hold copies now: idle ones beyond the states
// that sequences may come to ask for.
func (c *store) room() int { return c.idle - max(0, c.states-c.held) }

// reserveState gives a sequence its state.
func (c *store) reserveState(m *memory) {
	if m.state == none {
		m.state = c.take()
		c.held++
	}
}

// coverState says where a forward up to position n leaves copies. A forward that halted goes on
// with what was said when it began.
func (c *Cache) coverState(s *Sequence, i, n int) {
	st, m := &c.stores[i], &s.of[i]
	if m.state == none {
		panic("kvcache: positions were not reserved")
	}
	if m.at != s.filled {
		panic("kvcache: the state is not where the sequence is")
	}
	if m.upTo == n {
		return
	}
	st.dropCopies(m)
	m.upTo = n
	m.table = append(m.table, m.from, m.state)
	for b := s.filled / BlockTokens; b < n/BlockTokens; b++ {
		id := none
		if len(s.tokens) == s.filled && st.keeps(s, b+1, n) && st.room() > 0 {
			id = st.take()
		}
		m.table = append(m.table, id)
	}
}

// keeps tells whether a copy stays before block b of a sequence that goes on to position n: where
// it was marked, on the grid, and at the last border of a block.
func (c *store) keeps(s *Sequence, b, n int) bool { return c.lasting(s, b) || b == n/BlockTokens }

// lasting tells whether the copy before block b is kept longer than until the next one.
func (c *store) lasting(s *Sequence, b int) bool { return b%stateGrid == 0 || c.marked(s, b) }

// dropCopies gives the copies of a forward back that will not run, or is over.
func (c *store) dropCopies(m *memory) {
	for _, id := range m.copies() {
		if id != none {
			c.drop(id)
		}
	}
	m.table, m.upTo = m.table[:0], notLaid
}

// notLaid is the upTo of a memory for which no forward is laid out.
const notLaid = -1

// copies are where the forward that is laid out leaves copies.
func (m *memory) copies() []BlockID {
	if len(m.table) < tableCopies {
		return nil
	}
	return m.table[tableCopies:]
}

// landStates notes that the forward from position `from` has run: its copies can be found by the
// text, as far as that is named, and the state is where the sequence is.
func (c *Cache) landStates(s *Sequence, from int) {
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if !st.recurrent() {
			continue
		}
		for k, id := range m.copies() {
			if b := from/BlockTokens + k; id != none && b < len(s.keys) && (b+1)*BlockTokens <= s.filled {
				st.index(id, &s.keys[b])
				st.blocks[id].worth = st.lasting(s, b+1)
			}
		}
		m.at = m.upTo
		st.dropCopies(m)
		st.dropFrom(m)
		m.from = m.state
	}
}

// dropFrom gives back the copy that the sequence was to go on from.
func (c *store) dropFrom(m *memory) {
	if m.from != none && m.from != m.state {
		c.drop(m.from)
	}
	m.from = none
}

// freeState gives everything back. What was kept of the end of the text may be worth more than the
// grid.
func (c *store) freeState(s *Sequence, m *memory) {
	c.dropCopies(m)
	c.dropFrom(m)
	if m.state != none {
		c.drop(m.state)
		c.held--
	}
	m.state, m.at = none, 0
	if n := len(s.keys); n > 0 {
		if id := c.find(&s.keys[n-1]); id != none && c.blocks[id].refs == 0 && !c.blocks[id].worth {
			c.unlink(id)
			c.blocks[id].worth = true
			c.pushBack(id)
		}
	}
}

// stateResumable tells whether a sequence can go on from position n.
func (c *store) stateResumable(s *Sequence, m *memory, n int) bool {
	if n == s.filled && n == m.at {
		return true
	}
	if n%BlockTokens > 0 || n/BlockTokens > len(s.keys) {
		return false
	}
	id := c.find(&s.keys[n/BlockTokens-1])
	return id != none && (c.blocks[id].refs > 0 || c.room() > 0)
}

// resumeState makes n the position that the next forward goes on from.
func (c *store) resumeState(s *Sequence, m *memory, n int) {
	if n == s.filled && n == m.at {
		return
	}
	c.dropCopies(m)
	c.dropFrom(m)
	m.at = n
	if n > 0 {
		m.from = c.find(&s.keys[n/BlockTokens-1])
		c.hold(m.from)
	}
}

// holds lists the blocks that a sequence holds.
func (m *memory) holds() (ids []BlockID) {
	for _, id := range append([]BlockID{m.state}, m.copies()...) {
		if id != none {
			ids = append(ids, id)
		}
	}
	if m.from != none && m.from != m.state {
		ids = append(ids, m.from)
	}
	return ids
}

// layStates lays out a forward that was not covered before it ran.
func (c *Cache) layStates(s *Sequence, n int) {
	for i := range c.stores {
		if st := &c.stores[i]; st.recurrent() && s.of[i].upTo < n {
			c.coverState(s, i, n)
		}
	}
}
