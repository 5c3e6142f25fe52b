package prefixes

import (
	"container/list"
)

// lru is an exact least-recently-used cache of keys with sizes in bytes.
type lru[K comparable] struct {
	limit, total int64
	order        list.List // of *lruEntry[K], the most recently used first
	byKey        map[K]*list.Element
}

type lruEntry[K comparable] struct {
	key  K
	size int64
}

func newLRU[K comparable](limit int64) *lru[K] {
	return &lru[K]{limit: limit, byKey: map[K]*list.Element{}}
}

// has reports whether a key is cached. It does not count as a use.
func (c *lru[K]) has(k K) bool { return c.byKey[k] != nil }

// use adds a key or marks it as used, and evicts those that were used longest ago beyond the limit.
func (c *lru[K]) use(k K, size int64) {
	if e := c.byKey[k]; e != nil {
		c.order.MoveToFront(e)
		return
	}
	c.byKey[k] = c.order.PushFront(&lruEntry[K]{k, size})
	c.total += size
	for c.total > c.limit {
		last := c.order.Remove(c.order.Back()).(*lruEntry[K])
		delete(c.byKey, last.key)
		c.total -= last.size
	}
}
