package prefixes

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLRU compares the cache with a plain list on random uses of keys of several sizes.
func TestLRU(t *testing.T) {
	const limit = 100
	rng := rand.New(rand.NewPCG(3, 4))
	size := func(key int) int64 { return int64(1 + key%17) }
	c := newLRU[int](limit)
	var used []int // the one used last at the end
	for range 5000 {
		key := rng.IntN(40)
		if at := slices.Index(used, key); at >= 0 != c.has(key) {
			t.Fatalf("key %d: cached %v, want %v", key, c.has(key), at >= 0)
		} else if at >= 0 {
			used = slices.Delete(used, at, at+1)
		}
		c.use(key, size(key))
		used = append(used, key)
		total := int64(0)
		for _, k := range used {
			total += size(k)
		}
		for ; total > limit; used = used[1:] {
			total -= size(used[0])
		}
		if c.total != total || c.order.Len() != len(used) || len(c.byKey) != len(used) {
			t.Fatalf("%d bytes in %d entries, want %d in %d", c.total, c.order.Len(), total, len(used))
		}
	}
	c.use(1000, limit+1)
	if c.has(1000) || c.total > limit {
		t.Errorf("a key larger than the limit: %d bytes", c.total)
	}
}
