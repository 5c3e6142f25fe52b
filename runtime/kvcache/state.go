package kvcache

import "slices"

// A recurrent store keeps one block per sequence for its state, which is at the end of the last
// forward. A forward can also copy the state at the end of a block of 64 positions to another
// block, as long as there are idle blocks beyond those that sequences may need for states. Copies
// are found by the hash of their tokens like the blocks of any store. A sequence that continues
// from a copy reads it and writes its state to its own block.
//
// A forward with a draft writes the state after the draft to a block of its own, and the state
// before the draft to the sequence's block. If the whole draft is accepted, the two change places.
// The forward can also copy the state after each token of the draft, so that the sequence continues
// after the last accepted one. Without such a copy it continues from the state before the draft and
// computes the accepted tokens again.
//
// The table of a recurrent store describes the next forward:
//
//	[0]     the block that it reads, NoState before the first position
//	[1]     the block that it writes the state to, often the same
//	[2]     the block for the state before the draft, NoState without a draft
//	[3+i]   the block for a copy of the state at the end of block first+i, or NoState for no copy;
//	        first is the block that contains the first row; the last i is that of the position
//	        before the draft
//	[...]   then the blocks for the states after the first tokens of the draft, as far as copied

// NoState means "no block" in the table of a recurrent store.
const NoState = none

// Indexes into the table of a recurrent store.
const (
	tableFrom = iota
	tableTo
	tableBefore
	tableCopies
)

// StateGrid is the number of blocks between two automatic copies of the state. It bounds how many
// blocks are computed again if a text is continued at an unmarked position while copies remain.
const StateGrid = 16

// markShare limits the copies at marked positions of one text to 1/markShare of the blocks for
// copies; fewMarks is the minimum. A chat is continued after its last messages. If the ends of all
// messages were kept, one long chat would evict the automatic copies, including its own.
const markShare, fewMarks = 8, 4

// marked reports whether block b is marked and among the last marked blocks of the text, whose
// copies are kept.
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

// room returns the number of idle blocks of a recurrent store that copies may use, that is those
// beyond the states that sequences may still reserve.
func (c *store) room() int { return c.idle - max(0, c.states-c.held) }

// reserveState allocates the state block of a sequence that has none.
func (c *store) reserveState(m *memory) {
	if m.state == none {
		m.state = c.take()
		c.held++
	}
}

// ReserveDraft reserves what a forward with a draft needs in recurrent stores: a block for the
// state after the draft, and blocks for up to so many copies of the states in it, as far as blocks
// can be spared. If none can, it changes nothing and returns false.
func (c *Cache) ReserveDraft(s *Sequence, copies int) bool {
	for i := range c.stores {
		if st, m := &c.stores[i], &s.of[i]; st.recurrent() && m.ahead == none && st.room() < 1 {
			return false
		}
	}
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if !st.recurrent() {
			continue
		}
		if m.ahead == none {
			m.ahead = st.take()
		}
		for len(m.inDraft) < copies && st.room() > 0 {
			m.inDraft = append(m.inDraft, st.take())
		}
	}
	return true
}

// KeepsDraft reports whether a sequence can continue after the first tokens of the draft of the
// last forward: by appending them, since no store is recurrent or each has a copy of that state.
func (c *Cache) KeepsDraft(s *Sequence, accepted int) bool {
	for i := range c.stores {
		if m := &s.of[i]; c.stores[i].recurrent() && m.draftState(s.filled+accepted) == nil {
			return false
		}
	}
	return true
}

// draftState returns the place in m of the block with the state at position n, after a draft of the
// last forward or in it, or nil if there is none.
func (m *memory) draftState(n int) *BlockID {
	k := n - m.draftAt - 1
	switch {
	case m.aheadAt == notPrepared:
	case n == m.aheadAt:
		return &m.ahead
	case k >= 0 && k < len(m.inDraft):
		return &m.inDraft[k]
	}
	return nil
}

// RejectDraft records that tokens of the draft of the last forward were rejected: recurrent stores
// continue before the draft. It releases the blocks that ReserveDraft has reserved.
func (c *Cache) RejectDraft(s *Sequence) {
	for i := range c.stores {
		if st := &c.stores[i]; st.recurrent() {
			st.dropAhead(&s.of[i])
		}
	}
}

// dropAhead releases the blocks for the states after and in a draft.
func (c *store) dropAhead(m *memory) {
	if m.ahead != none {
		c.drop(m.ahead)
	}
	c.dropInDraft(m, 0)
	m.ahead, m.aheadAt = none, notPrepared
}

// dropInDraft releases the blocks for states in a draft but the first n.
func (c *store) dropInDraft(m *memory, n int) {
	for len(m.inDraft) > n {
		last := len(m.inDraft) - 1
		c.drop(m.inDraft[last])
		m.inDraft = m.inDraft[:last]
	}
}

// coverState decides where a forward up to position n, and a draft after it, writes states. A
// forward that was halted and resumes keeps the earlier decision.
func (c *Cache) coverState(s *Sequence, i, n, draft int) {
	st, m := &c.stores[i], &s.of[i]
	if m.state == none {
		panic("kvcache: positions were not reserved")
	}
	if m.at != s.filled {
		panic("kvcache: the state is not at the end of the sequence")
	}
	if m.upTo == n {
		return
	}
	st.dropCopies(m)
	m.upTo = n
	if draft > 0 {
		m.draftAt, m.aheadAt = n, n+draft
		st.dropInDraft(m, draft-1)
		m.table = append(m.table, m.from, m.ahead, m.state)
	} else {
		st.dropAhead(m)
		m.table = append(m.table, m.from, m.state, none)
	}
	for b := s.filled / BlockTokens; b < n/BlockTokens; b++ {
		id := none
		if len(s.tokens) == s.filled && st.keeps(s, b+1, n) && st.room() > 0 {
			id = st.take()
		}
		m.table = append(m.table, id)
	}
	m.ends = len(m.table)
	m.table = append(m.table, m.inDraft...)
}

// keeps reports whether a forward up to position n copies the state before block b: at marks, at
// multiples of StateGrid, and at the last block boundary.
func (c *store) keeps(s *Sequence, b, n int) bool { return c.lasting(s, b) || b == n/BlockTokens }

// lasting reports whether the copy before block b is retained longer than other copies.
func (c *store) lasting(s *Sequence, b int) bool { return b%StateGrid == 0 || c.marked(s, b) }

// dropCopies releases the copies of a prepared forward that is canceled or has ended.
func (c *store) dropCopies(m *memory) {
	for _, id := range m.copies() {
		if id != none {
			c.drop(id)
		}
	}
	m.table, m.upTo = m.table[:0], notPrepared
}

// notPrepared is the value of upTo if no forward is prepared.
const notPrepared = -1

// copies returns the part of the table that lists the copies of the prepared forward.
func (m *memory) copies() []BlockID {
	if len(m.table) < tableCopies {
		return nil
	}
	return m.table[tableCopies:m.ends]
}

// completeStates records that the forward from position `from` has run: it indexes the copies of
// blocks with known tokens and moves the position of the state to the end of the forward.
func (c *Cache) completeStates(s *Sequence, from int) {
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		if !st.recurrent() {
			continue
		}
		for k, id := range m.copies() {
			if b := from/BlockTokens + k; id != none && b < len(s.keys) && (b+1)*BlockTokens <= s.filled {
				st.index(id, &s.keys[b])
				st.blocks[id].checkpoint = st.lasting(s, b+1)
			}
		}
		m.at = m.upTo
		st.dropCopies(m)
		st.dropFrom(m)
		m.from = m.state
	}
}

// dropFrom releases the copy from which the sequence would have continued.
func (c *store) dropFrom(m *memory) {
	if m.from != none && m.from != m.state {
		c.drop(m.from)
	}
	m.from = none
}

// freeState releases all blocks of a sequence. It retains an idle copy at the end of the last full
// block like a checkpoint.
func (c *store) freeState(s *Sequence, m *memory) {
	c.dropCopies(m)
	c.dropAhead(m)
	c.dropFrom(m)
	if m.state != none {
		c.drop(m.state)
		c.held--
	}
	m.state, m.at = none, 0
	if n := len(s.keys); n > 0 {
		if id := c.find(&s.keys[n-1]); id != none && c.blocks[id].refs == 0 && !c.blocks[id].checkpoint {
			c.unlink(id)
			c.blocks[id].checkpoint = true
			c.pushBack(id)
		}
	}
}

// stateResumable reports whether a sequence can resume from position n.
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

// resumeState sets n as the position from which the next forward continues.
func (c *store) resumeState(s *Sequence, m *memory, n int) {
	if n == s.filled && n == m.at {
		return
	}
	c.dropCopies(m)
	c.dropAhead(m)
	c.dropFrom(m)
	m.at = n
	if n > 0 {
		m.from = c.find(&s.keys[n/BlockTokens-1])
		c.hold(m.from)
	}
}

// holds returns the blocks of a recurrent store that a sequence holds.
func (m *memory) holds() (ids []BlockID) {
	for _, id := range slices.Concat([]BlockID{m.state, m.ahead}, m.inDraft, m.copies()) {
		if id != none {
			ids = append(ids, id)
		}
	}
	if m.from != none && m.from != m.state {
		ids = append(ids, m.from)
	}
	return ids
}

// prepareStates prepares a forward up to position n in recurrent stores for which Cover did not. If
// the last forward has kept the state at n, after a draft or in it, that state takes the place of
// the one before the draft.
func (c *Cache) prepareStates(s *Sequence, n int) {
	for i := range c.stores {
		st, m := &c.stores[i], &s.of[i]
		kept := m.draftState(n)
		switch {
		case !st.recurrent():
		case m.upTo == notPrepared && kept != nil:
			m.state, *kept = *kept, m.state
			m.from, m.upTo = m.state, n
			st.dropAhead(m)
		case m.upTo < n:
			c.coverState(s, i, n, 0)
		}
	}
}
