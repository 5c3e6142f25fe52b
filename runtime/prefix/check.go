package prefix

import (
	"bytes"
	"fmt"
	"slices"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/kvcache/disk"
)

// An imported prefix is from another host. Before its first use its last block is computed from the
// blocks before it and compared: a prefix of another model or of other arithmetic does not give
// equal bits. Find ignores imported blocks until they were compared.

// Unchecked is an imported prefix that was not compared yet.
type Unchecked struct {
	Prompt []int32 // ends with the block to compute
	Before Hit     // the part of Prompt to load
	keys   []kvcache.Key
}

// Last returns the key of the block to compare.
func (u *Unchecked) Last() kvcache.Key { return u.keys[len(u.keys)-1] }

// FindUnchecked returns the longest part of a prompt that is on disk under the public salt. It
// returns nil if no block that a sequence needs to resume from there is imported and not compared.
func (c *Cache) FindUnchecked(prompt []int32) *Unchecked {
	full := (len(prompt) - 1) / kvcache.BlockTokens
	keys := kvcache.Keys(Public, prompt[:max(0, full)*kvcache.BlockTokens])
	n := c.longest(keys, c.Store.Has) / kvcache.BlockTokens
	if !slices.ContainsFunc(c.needed(keys[:n]), c.Store.Unchecked) {
		return nil
	}
	u := &Unchecked{Prompt: prompt[:n*kvcache.BlockTokens], keys: keys[:n]}
	u.Before = Hit{Positions: c.longest(keys[:n-1], c.Store.Has), keys: keys[:n-1]}
	u.Before.Bytes = c.bytes(u.Before.Positions)
	return u
}

// needed lists the objects that a sequence needs to resume at the end of a text of full blocks.
func (c *Cache) needed(keys []kvcache.Key) (list []disk.Name) {
	for store, k := range c.Kinds {
		if c.Sizes[store] == 0 {
			continue
		}
		for _, p := range kvcache.Needed(k, store, len(keys)*kvcache.BlockTokens) {
			list = append(list, c.name(p, keys))
		}
	}
	return list
}

// Compare compares the last block of an imported prefix, and others that were not loaded, with
// those that were computed under a salt, in every store that has both. If they are equal, Find
// returns the prefix from now on; states in the middle of it are compared when they are needed. If
// they differ, the prefix is removed with a warning. If the last block is no longer cached or the
// cache is closed, Compare does nothing and returns false.
func (c *Cache) Compare(u *Unchecked, salt kvcache.Salt) (known bool) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false
	}
	c.comparing.Add(1)
	c.mu.Unlock()
	defer c.comparing.Done()
	c.Cached.Settle(c.ctx)
	computed, last := kvcache.Keys(salt, u.Prompt), len(u.keys)-1
	checked := slices.Concat(c.needed(u.keys), c.needed(u.keys[:u.Before.Positions/kvcache.BlockTokens]))
	for b := u.Before.Positions / kvcache.BlockTokens; b <= last; b++ {
		for store := range c.Kinds {
			if c.Sizes[store] == 0 {
				continue
			}
			stored := make([]byte, c.Sizes[store])
			name := c.name(kvcache.Piece{Store: store, Block: b}, u.keys)
			if _, err := c.Store.Read(c.ctx, name, [][]byte{stored}); err != nil {
				continue // the store has no state there, or the object was evicted or damaged
			}
			equal, cached := c.equalBlock(store, &computed[b], stored)
			if cached && !equal {
				c.reject(u)
				return true
			}
			if cached {
				checked, known = append(checked, name), known || b == last
			}
		}
	}
	if known {
		for _, n := range checked {
			c.Store.Checked(n)
		}
	}
	return known
}

// equalBlock compares a cached block with a stored one. known is false if it is not cached.
func (c *Cache) equalBlock(store int, key *kvcache.Key, stored []byte) (equal, known bool) {
	id, ok := c.Cached.Pin(store, key)
	if !ok {
		return false, false
	}
	defer c.Cached.Unpin(store, id)
	for _, part := range c.Parts(store, id) {
		n := min(len(part), len(stored))
		if !bytes.Equal(part, stored[:n]) {
			return false, true
		}
		stored = stored[n:]
	}
	return len(stored) == 0, true
}

// reject removes the imported blocks of a prefix whose values differ.
func (c *Cache) reject(u *Unchecked) {
	for store := range c.Kinds {
		for b := range u.keys {
			n := c.name(kvcache.Piece{Store: store, Block: b}, u.keys)
			if c.Sizes[store] > 0 && c.Store.Unchecked(n) {
				_ = c.Store.Remove(n)
			}
		}
	}
	c.Store.Warn("imported", fmt.Sprintf("an imported prefix of %d tokens has other values than this model "+
		"computes; it was removed before use", len(u.Prompt)))
}
