package kvcache

import "fmt"

// Check verifies the invariants of the cache against the sequences that are open: every block is
// either idle or held exactly as often as tables name it, the lists of idle ones are whole, the
// index finds exactly the indexed blocks, no sequence holds more than was promised to it, and each
// has what its next row reads. Tests and SANDWICH_VERIFY=1 call it; it costs time in the number of
// blocks.
func (c *Cache) Check(open []*Sequence) error {
	for i := range c.stores {
		st := &c.stores[i]
		if err := c.checkHeld(i, open); err != nil {
			return err
		}
		if err := st.checkIdle(); err != nil {
			return err
		}
		if err := st.checkIndex(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) checkHeld(i int, open []*Sequence) error {
	st := &c.stores[i]
	refs, promised := make([]int32, len(st.blocks)), 0
	for j, s := range open {
		m, held := &s.of[i], 0
		if st.recurrent() {
			for _, id := range m.holds() {
				refs[id]++
			}
			if m.at != s.filled {
				return fmt.Errorf("kvcache: sequence %d has %d positions and a state of %d", j, s.filled, m.at)
			}
			continue
		}
		if BlocksFor(s.filled) > len(m.table) {
			return fmt.Errorf("kvcache: sequence %d has %d positions in %d blocks", j, s.filled, len(m.table))
		}
		for b, id := range m.table {
			if id != none {
				refs[id]++
				held++
				continue
			}
			if at := s.filled / BlockTokens; b >= at || st.kind.Reads(at, b) {
				return fmt.Errorf("kvcache: sequence %d of %d positions lacks block %d (%s)", j, s.filled, b,
					st.kind.Name())
			}
		}
		if st.bounded() && held > m.quota {
			return fmt.Errorf("kvcache: sequence %d holds %d blocks (%s), %d were promised", j, held, st.kind.Name(),
				m.quota)
		}
		promised += m.quota
	}
	if promised != st.promised || promised > len(st.blocks) {
		return fmt.Errorf("kvcache: %d of %d blocks are promised, %d counted", promised, len(st.blocks), st.promised)
	}
	if states := max(0, st.states-st.held); st.recurrent() && st.idle < states {
		return fmt.Errorf("kvcache: %d idle blocks are left for %d states", st.idle, states)
	}
	for id := range st.blocks {
		if got := st.blocks[id].refs; got != refs[id] {
			return fmt.Errorf("kvcache: block %d counts %d holders, tables name it %d times", id, got, refs[id])
		}
	}
	return nil
}

func (c *store) checkIdle() error {
	seen := 0
	for _, l := range []list{c.loose, c.kept} {
		before := none
		for id := l.first; id != none; id = c.blocks[id].next {
			b := &c.blocks[id]
			switch {
			case b.refs != 0:
				return fmt.Errorf("kvcache: idle block %d has %d holders", id, b.refs)
			case b.prev != before || b.listed != (l == c.kept):
				return fmt.Errorf("kvcache: a list of idle blocks is broken at block %d", id)
			case seen == len(c.blocks):
				return fmt.Errorf("kvcache: a list of idle blocks is a ring")
			}
			seen++
			before = id
		}
		if before != l.last {
			return fmt.Errorf("kvcache: a list of idle blocks ends at %d, not at %d", before, l.last)
		}
	}
	held := 0
	for i := range c.blocks {
		if c.blocks[i].refs > 0 {
			held++
		}
	}
	if seen != c.idle || seen+held != len(c.blocks) {
		return fmt.Errorf("kvcache: %d blocks listed idle, %d counted idle, %d held, %d in all", seen, c.idle, held,
			len(c.blocks))
	}
	return nil
}

func (c *store) checkIndex() error {
	listed := 0
	for slot := range c.buckets {
		for id := c.buckets[slot]; id != none; id = c.blocks[id].chain {
			b := &c.blocks[id]
			if !b.indexed || c.bucket(&b.key) != uint64(slot) {
				return fmt.Errorf("kvcache: block %d stands in the wrong place of the index", id)
			}
			if listed++; listed > len(c.blocks) {
				return fmt.Errorf("kvcache: the index is a ring")
			}
		}
	}
	indexed := 0
	for i := range c.blocks {
		if c.blocks[i].indexed {
			indexed++
		}
	}
	if listed != indexed {
		return fmt.Errorf("kvcache: %d blocks are indexed, the index lists %d", indexed, listed)
	}
	return nil
}
