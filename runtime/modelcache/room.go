package modelcache

import (
	"context"
	"fmt"
	"slices"
)

// makeRoom unloads models until the budget admits further memory, and accounts that memory. It
// waits for models with users, whose further requests wait. If ctx ends, it gives up.
func (c *Cache) makeRoom(ctx context.Context, need Memory) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		for _, e := range c.entries {
			e.draining = e.closing
		}
	}()
	for ctx.Err() == nil {
		if c.budget.Check(c.used.plus(need, 1)) == nil {
			c.account(need, nil)
			return nil
		}
		if err := c.drain(need); err != nil {
			return err
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
	return context.Cause(ctx)
}

// drain chooses the models to unload so that the budget admits further memory, and unloads those
// without users: unused ones first, and then the least recently used. c.mu is held.
func (c *Cache) drain(need Memory) error {
	var candidates []*Entry
	left := c.used.plus(need, 1)
	for _, e := range c.entries {
		switch {
		case e.instance == nil:
		case e.closing || e.retired || e.draining:
			left = left.plus(e.memory, -1)
		case !e.pinned:
			candidates = append(candidates, e)
		}
	}
	slices.SortFunc(candidates, func(a, b *Entry) int {
		if (a.users == 0) != (b.users == 0) {
			if a.users == 0 {
				return -1
			}
			return 1
		}
		return int(a.last - b.last)
	})
	for _, e := range candidates {
		if c.budget.Check(left) == nil {
			break
		}
		e.draining = true
		left = left.plus(e.memory, -1)
	}
	if err := c.budget.Check(left); err != nil {
		return fmt.Errorf("the model does not fit next to the pinned models: %w", err)
	}
	for _, e := range c.entries {
		if e.draining && e.users == 0 && !e.closing {
			e.closing = true
			go e.unload()
		}
	}
	return nil
}
