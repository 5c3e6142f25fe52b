package kvcache

import "fmt"

// Check verifies the invariants of the cache against the sequences that are
// open: every block is either idle or held exactly as often as tables name it,
// the idle list is whole, and the index finds exactly the indexed blocks. Tests
// and SANDWICH_VERIFY=1 call it; it costs time in the number of blocks.
func (c *Cache) Check(open []*Sequence) error {
	refs := make([]int32, len(c.blocks))
	for i, s := range open {
		if BlocksFor(s.filled) > len(s.table) {
			return fmt.Errorf("kvcache: sequence %d has %d positions in %d blocks", i, s.filled, len(s.table))
		}
		for _, id := range s.table {
			refs[id]++
		}
	}
	for i := range c.blocks {
		if got := c.blocks[i].refs; got != refs[i] {
			return fmt.Errorf("kvcache: block %d counts %d holders, tables name it %d times", i, got, refs[i])
		}
	}
	if err := c.checkIdle(); err != nil {
		return err
	}
	return c.checkIndex()
}

func (c *Cache) checkIdle() error {
	seen, before := 0, none
	for id := c.first; id != none; id = c.blocks[id].next {
		b := &c.blocks[id]
		switch {
		case b.refs != 0:
			return fmt.Errorf("kvcache: idle block %d has %d holders", id, b.refs)
		case b.prev != before:
			return fmt.Errorf("kvcache: idle list is broken at block %d", id)
		case seen == len(c.blocks):
			return fmt.Errorf("kvcache: idle list is a ring")
		}
		seen++
		before = id
	}
	held := 0
	for i := range c.blocks {
		if c.blocks[i].refs > 0 {
			held++
		}
	}
	if seen != c.idle || before != c.last || seen+held != len(c.blocks) {
		return fmt.Errorf("kvcache: %d blocks listed idle, %d counted idle, %d held, %d in all", seen, c.idle, held,
			len(c.blocks))
	}
	return nil
}

func (c *Cache) checkIndex() error {
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
