package jit

import "sync"

// Cache holds values that are built once for each key, such as loaded functions. It is safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	build   func(K) (V, error)
	entries sync.Map // K -> func() (V, error)
}

// NewCache returns an empty cache of what build returns.
func NewCache[K comparable, V any](build func(K) (V, error)) *Cache[K, V] {
	return &Cache[K, V]{build: build}
}

// Get returns the value of a key. The first call for a key builds it, and concurrent ones wait for
// that. Later calls return the same value, or the same error.
func (c *Cache[K, V]) Get(key K) (V, error) {
	once, ok := c.entries.Load(key)
	if !ok {
		once, _ = c.entries.LoadOrStore(key, sync.OnceValues(func() (V, error) { return c.build(key) }))
	}
	return once.(func() (V, error))()
}
