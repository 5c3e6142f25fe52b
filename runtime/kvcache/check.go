package kvcache

import "fmt"

// Check verifies the invariants of the cache, where open lists all open sequences: reference counts
// match the tables, the lists of idle blocks are consistent, the index contains exactly the indexed
// blocks, no sequence holds more blocks than it reserved, and each sequence has the blocks that its
// next row reads. It returns the first violation. Tests and SANDWICH_VERIFY=1 call it; its time
// grows with the number of blocks.
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

// checkHeld checks the reservations and reference counts of store i.
func (c *Cache) checkHeld(i int, open []*Sequence) error {
	st := &c.stores[i]
	refs, promised := make([]int32, len(st.blocks)), 0
	for _, id := range st.pins {
		refs[id]++
		if st.bounded() && !st.recurrent() {
			promised++
		}
	}
	for j, s := range open {
		m, held, filled := &s.of[i], 0, max(s.filled, s.loading)
		if st.recurrent() {
			for _, id := range m.holds() {
				refs[id]++
			}
			if m.at != filled {
				return fmt.Errorf("kvcache: sequence %d has %d positions, but its state is at position %d", j, filled,
					m.at)
			}
			continue
		}
		if BlocksFor(filled) > len(m.table) {
			return fmt.Errorf("kvcache: sequence %d has %d positions, but only %d blocks", j, filled, len(m.table))
		}
		for b, id := range m.table {
			if id != none {
				refs[id]++
				held++
				continue
			}
			if at := filled / BlockTokens; b >= at || st.kind.Reads(at, b) {
				return fmt.Errorf("kvcache: sequence %d with %d positions lacks block %d (kind %s)", j, filled,
					b, st.kind.Name())
			}
		}
		if st.bounded() && held > m.quota {
			return fmt.Errorf("kvcache: sequence %d holds %d blocks (kind %s), but reserved %d", j, held,
				st.kind.Name(), m.quota)
		}
		promised += m.quota
	}
	if promised != st.promised || promised > len(st.blocks) {
		return fmt.Errorf("kvcache: sequences have reserved %d of %d blocks, but the store's counter says %d",
			promised, len(st.blocks), st.promised)
	}
	if states := max(0, st.states-st.held); st.recurrent() && st.idle < states {
		return fmt.Errorf("kvcache: %d idle blocks are too few for the %d states not yet in use", st.idle, states)
	}
	for id := range st.blocks {
		if got := st.blocks[id].refs; got != refs[id] {
			return fmt.Errorf("kvcache: block %d has reference count %d, but %d references exist", id, got, refs[id])
		}
	}
	return nil
}

// checkIdle checks the lists of idle blocks and the number of idle blocks.
func (c *store) checkIdle() error {
	seen := 0
	for _, l := range []list{c.loose, c.kept} {
		before := none
		for id := l.first; id != none; id = c.blocks[id].next {
			b := &c.blocks[id]
			switch {
			case b.refs != 0:
				return fmt.Errorf("kvcache: idle block %d has reference count %d", id, b.refs)
			case b.prev != before || b.listed != (l == c.kept):
				return fmt.Errorf("kvcache: a list of idle blocks is damaged at block %d", id)
			case seen == len(c.blocks):
				return fmt.Errorf("kvcache: a list of idle blocks contains a cycle")
			}
			seen++
			before = id
		}
		if before != l.last {
			return fmt.Errorf("kvcache: a list of idle blocks ends at block %d, but its recorded end is %d", before,
				l.last)
		}
	}
	held := 0
	for i := range c.blocks {
		if c.blocks[i].refs > 0 {
			held++
		}
	}
	if seen != c.idle || seen+held != len(c.blocks) {
		return fmt.Errorf("kvcache: %d blocks are in idle lists, %d are counted as idle and %d are held, of %d blocks",
			seen, c.idle, held, len(c.blocks))
	}
	return nil
}

// checkIndex checks that the hash index contains exactly the indexed blocks.
func (c *store) checkIndex() error {
	listed := 0
	for slot := range c.buckets {
		for id := c.buckets[slot]; id != none; id = c.blocks[id].chain {
			b := &c.blocks[id]
			if !b.indexed || c.bucket(&b.key) != uint64(slot) {
				return fmt.Errorf("kvcache: block %d does not belong in its bucket of the index", id)
			}
			if listed++; listed > len(c.blocks) {
				return fmt.Errorf("kvcache: the index contains a cycle")
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
		return fmt.Errorf("kvcache: %d blocks are marked as indexed, but the index contains %d", indexed, listed)
	}
	return nil
}
