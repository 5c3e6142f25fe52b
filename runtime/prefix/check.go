package prefix

import (
	"bytes"
	"fmt"
	"sync"

	"sandwich/runtime/kvcache"
)

// An imported prefix is from another host. The first request that could use it loads it without its
// last block, which is computed and compared: a prefix whose values another model or another
// arithmetic made does not give equal bits.

// checked remembers the keys of imported blocks that were compared. The zero value is empty. Its
// methods may be called concurrently.
type checked struct {
	mu   sync.Mutex
	keys map[kvcache.Key]struct{}
}

func (c *checked) has(k kvcache.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.keys[k]
	return ok
}

func (c *checked) add(keys []kvcache.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) >= maxSeen || c.keys == nil {
		c.keys = map[kvcache.Key]struct{}{}
	}
	for _, k := range keys {
		c.keys[k] = struct{}{}
	}
}

// firstFull returns the first store with content that keeps all positions, or -1.
func (c *Cache) firstFull() int {
	for store, k := range c.Kinds {
		if c.Sizes[store] > 0 && k.Most() == kvcache.All {
			return store
		}
	}
	return -1
}

// restrict shortens a hit whose last block is imported and was not compared yet, so that this block
// is computed.
func (c *Cache) restrict(h *Hit) {
	last, store := h.Positions/kvcache.BlockTokens-1, c.firstFull()
	if last < 0 || store < 0 || c.checked.has(h.keys[last]) {
		return
	}
	info, err := c.Store.Info(c.name(kvcache.Piece{Store: store, Block: last}, h.keys))
	if err != nil || !info.Imported {
		return
	}
	h.compare = last + 1
	h.Positions = c.longest(h.keys[:last])
}

// Compare compares the block that Find left out of an imported prefix with the computed one, in the
// background. The prompt of the hit must have been computed under a salt. A prefix that differs is
// removed with a warning.
func (c *Cache) Compare(h Hit, salt kvcache.Salt, prompt []int32) {
	if h.compare == 0 {
		return
	}
	c.idle.Add(1)
	select {
	case c.jobs <- job{compare: h, keys: kvcache.Keys(salt, prompt[:h.compare*kvcache.BlockTokens])}:
	default:
		c.idle.Done() // a later request compares it
	}
}

// compareJob does what Compare promises.
func (c *Cache) compareJob(h *Hit, computed []kvcache.Key) {
	store, last := c.firstFull(), h.compare-1
	_, stored, err := c.Store.Content(c.ctx, c.name(kvcache.Piece{Store: store, Block: last}, h.keys))
	if err != nil {
		return
	}
	id, ok := c.Cached.Pin(store, &computed[last])
	if !ok {
		return // evicted meanwhile
	}
	equal := true
	for _, part := range c.Parts(store, id) {
		n := min(len(part), len(stored))
		equal = equal && n == len(part) && bytes.Equal(part, stored[:n])
		stored = stored[n:]
	}
	c.Cached.Unpin(store, id)
	if equal {
		c.checked.add(h.keys[:h.compare])
		return
	}
	for store := range c.Kinds {
		for b := range h.compare {
			_ = c.Store.Remove(c.name(kvcache.Piece{Store: store, Block: b}, h.keys)) // as far as it exists
		}
	}
	c.Store.Warn("imported", fmt.Sprintf("an imported prefix of %d tokens has other values than this model "+
		"computes; it was removed", h.compare*kvcache.BlockTokens))
}
