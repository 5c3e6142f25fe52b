package prefix

import (
	"math"

	"sandwich/runtime/kvcache"
)

// States of a prefix are stored at intervals, so that a text that differs after the beginning
// continues at the last state before the difference. A state costs the time of its write; a
// difference costs the computation of half an interval on average. For one use of a prefix of L
// tokens, states that take w seconds to write and t seconds of computation per token, the sum
// w*L/n + t*n/2 is smallest for n = sqrt(2*w*L/t).

// Interval returns the distance in tokens at which states of a prefix of so many tokens are stored,
// by measured and predicted times. It is 0 for models whose stores keep all positions.
func (c *Cache) Interval(tokens int) int {
	if c.stateBytes() == 0 {
		return 0
	}
	return c.interval(tokens/kvcache.BlockTokens) * kvcache.BlockTokens
}

// interval is Interval in blocks.
func (c *Cache) interval(blocks int) int {
	tokens := blocks * kvcache.BlockTokens
	c.mu.Lock()
	write := float64(c.stateBytes()) / c.writes.now
	c.mu.Unlock()
	compute := c.Compute(tokens).Seconds()
	return bestInterval(blocks, write, compute)
}

// bestInterval returns the interval in blocks for a prefix that takes so many seconds to compute,
// where the write of a state takes write seconds. It is a multiple of the distance at which the
// cache has copies of states, and at most the length of the prefix rounded up to such a multiple.
func bestInterval(blocks int, write, compute float64) int {
	const grid = kvcache.StateGrid
	limit := (blocks + grid - 1) / grid * grid
	if compute <= 0 {
		return max(grid, limit)
	}
	n := math.Sqrt(2*write/compute) * float64(blocks)
	if !(n < float64(limit)) {
		return max(grid, limit)
	}
	return max(grid, int(math.Round(n/grid))*grid)
}

// stateBytes returns the bytes that stores which do not keep all positions need to resume a long
// text.
func (c *Cache) stateBytes() (total int64) {
	for store, k := range c.Kinds {
		if c.Sizes[store] > 0 && k.Most() != kvcache.All {
			total += c.Sizes[store] * int64(k.Most())
		}
	}
	return total
}
